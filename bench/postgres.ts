/**
 * The PostgreSQL that benchmarks run on, the same for all peers: set up as one would for work, and durable. The npm
 * package that tests use is compiled to be small; one that is installed on the machine is compiled to be fast, so it is
 * preferred.
 */
import { readdirSync, statSync } from 'node:fs'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { type Found, type PrivatePostgres, privatePostgres } from '../tools/services/index.ts'
import { postgresVersion } from '../tools/services/postgres/server.ts'
import { runSql } from './run-sql.ts'

const programsVariable = 'REDRIVE_BENCH_POSTGRES'
/** Where Debian's packages put them, one folder for each version. */
const installedUnder = '/usr/lib/postgresql'
const versionMin = 15
const gigabyte = 1_024 ** 3

/** `about`: what it is and how it is set up, for the notes. */
export type BenchPostgres = PrivatePostgres & Readonly<{ about: string }>

export async function benchPostgres(): Promise<Found<BenchPostgres>> {
  const programs = programsToUse()
  const sharedBuffers = `${Math.max(128, Math.floor(Math.min(totalmem() / 4, 4 * gigabyte) / 1_024 ** 2))}MB`
  const settings = { shared_buffers: sharedBuffers, min_wal_size: '2GB', max_wal_size: '8GB' }
  const server = await privatePostgres({ settings, ...(programs !== undefined && { programs }) })
  if (!server.isFound) return server
  await fillLog(server.url)
  const version = await postgresVersion(server.url)
  const origin = programs === undefined ? 'of the npm package, compiled for size' : `installed in ${programs}`
  const about = `PostgreSQL ${version}, ${origin}; shared_buffers ${sharedBuffers}, max_wal_size 8GB, fsync and synchronous_commit on.`
  return { ...server, about }
}

/**
 * A server that has worked for a while writes its log into files that it used before; a new one makes and clears each of
 * them first, which is felt.
 */
async function fillLog(url: string): Promise<void> {
  const message = `select count(pg_logical_emit_message(false, 'bench', repeat('x', 1000000)))
    from generate_series(1, 2000)`
  await runSql(url, [message, 'checkpoint'])
}

/** Undefined: those of the npm package. */
function programsToUse(): string | undefined {
  const told = process.env[programsVariable]
  if (told !== undefined) return told === 'npm' ? undefined : told
  const newest = installedVersions().sort((left, right) => right - left)[0]
  return newest === undefined ? undefined : join(installedUnder, String(newest), 'bin')
}

function installedVersions(): number[] {
  try {
    return readdirSync(installedUnder)
      .map(Number)
      .filter(
        (version) => version >= versionMin && isFile(join(installedUnder, String(version), 'bin', 'initdb')),
      )
  } catch {
    return []
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}

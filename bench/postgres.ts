/**
 * The PostgreSQL that benchmarks run on, the same for all peers: set up as one would for work, and durable. The npm
 * package that tests use is compiled to be small; one that is installed on the machine is compiled to be fast, so it is
 * preferred.
 */
import { readdirSync, statSync } from 'node:fs'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { type Found, type PrivatePostgres, startPrivatePostgres } from '../tools/services/index.ts'
import { readPostgresVersion } from '../tools/services/postgres/server.ts'
import { runSql } from './run-sql.ts'

const programsVariable = 'REDRIVE_BENCH_POSTGRES'
/** Where Debian's packages put them, one folder for each version. */
const installedUnder = '/usr/lib/postgresql'
const versionMin = 15
const gigabyte = 1_024 ** 3

/** `about`: what it is and how it is set up, for the notes. */
export type BenchPostgres = PrivatePostgres & Readonly<{ about: string }>

/** `isSeasoned`: as after days of work, for benchmarks that write gigabytes; takes a minute. */
export async function benchPostgres({ isSeasoned = false } = {}): Promise<Found<BenchPostgres>> {
  const programs = programsToUse()
  const buffersMb = Math.max(128, Math.floor(Math.min(totalmem() / 4, 4 * gigabyte) / 1_024 ** 2))
  const sharedBuffers = `${buffersMb}MB`
  const logGb = isSeasoned ? 8 : 2
  const settings = { shared_buffers: sharedBuffers, min_wal_size: `${logGb}GB`, max_wal_size: '8GB' }
  const server = await startPrivatePostgres({ settings, ...(programs !== undefined && { programs }) })
  if (!server.isFound) return server
  if (isSeasoned) await fillBuffers(server.url, buffersMb)
  await fillLog(server.url, logGb)
  const version = await readPostgresVersion(server.url)
  const origin = programs === undefined ? 'of the npm package, compiled for size' : `installed in ${programs}`
  const about = `PostgreSQL ${version}, ${origin}; shared_buffers ${sharedBuffers}, max_wal_size 8GB, ${isSeasoned ? 'memory and log files used before, ' : ''}fsync and synchronous_commit on.`
  return { ...server, about }
}

/**
 * A server that has worked for a while has touched all its memory. To a new one the system gives each page of it only
 * then, and in a virtual machine that may cost more than what is done with the page.
 */
async function fillBuffers(url: string, megabytes: number): Promise<void> {
  const pages = Math.floor((megabytes * 1_024 ** 2) / 8_192)
  await runSql(url, [
    // One row in each page.
    'create table touched (filling text) with (fillfactor = 10, autovacuum_enabled = off)',
    `insert into touched select repeat('x', 700) from generate_series(1, ${pages})`,
    'drop table touched',
  ])
}

/** Its log it writes into files that it used before; a new one makes and clears each of them first. */
async function fillLog(url: string, gigabytes: number): Promise<void> {
  const message = `select count(pg_logical_emit_message(false, 'bench', repeat('x', 1000000)))
    from generate_series(1, ${1_000 * gigabytes})`
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

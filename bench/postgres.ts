/**
 * The PostgreSQL of the benchmarks, the same for all peers, with durable production settings. A PostgreSQL
 * installed on the machine is preferred, because it is compiled for speed; the npm package of the tests is
 * compiled for size.
 */
import { readdirSync, statSync } from 'node:fs'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { type Found, type PrivatePostgres, startPrivatePostgres } from '../tools/services/index.ts'
import { readPostgresVersion } from '../tools/services/postgres/server.ts'
import { runSql } from './run-sql.ts'

const programsVariable = 'REDRIVE_BENCH_POSTGRES'
/** Debian's packages have one folder per version here. */
const installedUnder = '/usr/lib/postgresql'
const versionMin = 15
const gigabyte = 1_024 ** 3

/** `description`: version and settings, for the notes. */
export type BenchPostgres = PrivatePostgres & Readonly<{ description: string }>

/**
 * `isWarmedUp`: in the state after days of work, for benchmarks that write gigabytes. This takes a minute.
 */
export async function startBenchPostgres({ isWarmedUp = false } = {}): Promise<Found<BenchPostgres>> {
  const programs = choosePrograms()
  const buffersMb = Math.max(128, Math.floor(Math.min(totalmem() / 4, 4 * gigabyte) / 1_024 ** 2))
  const sharedBuffers = `${buffersMb}MB`
  const logGb = isWarmedUp ? 8 : 2
  const settings = { shared_buffers: sharedBuffers, min_wal_size: `${logGb}GB`, max_wal_size: '8GB' }
  const server = await startPrivatePostgres({ settings, ...(programs !== undefined && { programs }) })
  if (!server.isFound) return server
  if (isWarmedUp) await touchBuffers(server.url, buffersMb)
  await createWalFiles(server.url, logGb)
  const version = await readPostgresVersion(server.url)
  const origin = programs === undefined ? 'of the npm package, compiled for size' : `installed in ${programs}`
  const description = `PostgreSQL ${version}, ${origin}; shared_buffers ${sharedBuffers}, max_wal_size 8GB, ${isWarmedUp ? 'memory and log files used before, ' : ''}fsync and synchronous_commit on.`
  return { ...server, description }
}

/**
 * Makes PostgreSQL touch all its shared memory, as in a server that has worked for a while. The operating
 * system provides each page at its first use, and in a virtual machine that can cost more than the work on
 * the page.
 */
async function touchBuffers(url: string, megabytes: number): Promise<void> {
  const pages = Math.floor((megabytes * 1_024 ** 2) / 8_192)
  await runSql(url, [
    // Each page holds one row.
    'create table touched (filling text) with (fillfactor = 10, autovacuum_enabled = off)',
    `insert into touched select repeat('x', 700) from generate_series(1, ${pages})`,
    'drop table touched',
  ])
}

/**
 * Creates the WAL files in advance. A server that has worked for a while reuses its files instead of creating
 * them.
 */
async function createWalFiles(url: string, gigabytes: number): Promise<void> {
  const message = `select count(pg_logical_emit_message(false, 'bench', repeat('x', 1000000)))
    from generate_series(1, ${1_000 * gigabytes})`
  await runSql(url, [message, 'checkpoint'])
}

/** Undefined: the programs of the npm package. */
function choosePrograms(): string | undefined {
  const configured = process.env[programsVariable]
  if (configured !== undefined) return configured === 'npm' ? undefined : configured
  const newest = listInstalledVersions().sort((left, right) => right - left)[0]
  return newest === undefined ? undefined : join(installedUnder, String(newest), 'bin')
}

function listInstalledVersions(): number[] {
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

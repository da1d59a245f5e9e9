/**
 * Checks that both stores have the same folders and file names, except for the differences in this table.
 * Part of `npm run check`. Tests are not compared.
 */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { compareStores, type StoreDifference } from './compare-stores.ts'
import { repository } from './run-program.ts'

const storage = 'server/src/storage'

const protocol = 'PostgreSQL is reached over a network protocol; node:sqlite is called directly'
const inFile = 'only SQLite opens a file'
const threads = 'node:sqlite blocks its thread, so a file has threads for writing, reading and checkpoints'
const leasePath = 'leases of several servers need row locks and short index scans'

const differences: readonly StoreDifference[] = [
  { file: 'backend.ts', store: 'sqlite', reason: 'SQLite stores live in a file or in memory' },
  { file: 'memory-backend.ts', store: 'sqlite', reason: 'SQLite stores live in a file or in memory' },
  { file: 'sqlite-storage.ts', store: 'sqlite', reason: 'the entry point has the name of its store' },
  {
    file: 'connection/audit-functions.ts',
    store: 'sqlite',
    reason: 'SQLite has no SHA-256; the function of PostgreSQL is in its migration',
  },
  { file: 'connection/create-folder.ts', store: 'sqlite', reason: inFile },
  { file: 'connection/database-file.ts', store: 'sqlite', reason: inFile },
  { file: 'connection/database.ts', store: 'sqlite', reason: 'a synchronous wrapper of node:sqlite' },
  {
    file: 'letters/key-runs.ts',
    store: 'sqlite',
    reason: 'bounds the pages that a commit of letters touches',
  },
  { file: 'threads/background-throttle.ts', store: 'sqlite', reason: threads },
  { file: 'threads/capture-encoding.ts', store: 'sqlite', reason: threads },
  { file: 'threads/checkpoint-thread.ts', store: 'sqlite', reason: threads },
  { file: 'threads/file-backend.ts', store: 'sqlite', reason: threads },
  { file: 'threads/read.ts', store: 'sqlite', reason: threads },
  { file: 'threads/read-only-backend.ts', store: 'sqlite', reason: threads },
  { file: 'threads/reader-thread.ts', store: 'sqlite', reason: threads },
  { file: 'threads/thread-messages.ts', store: 'sqlite', reason: threads },
  { file: 'threads/thread.ts', store: 'sqlite', reason: threads },
  { file: 'threads/wal.ts', store: 'sqlite', reason: threads },
  { file: 'threads/writer-thread.ts', store: 'sqlite', reason: threads },
  { file: 'postgres-storage.ts', store: 'postgres', reason: 'the entry point has the name of its store' },
  { file: 'group-commit.ts', store: 'postgres', reason: 'SQLite groups commits in its writer thread' },
  { file: 'store-context.ts', store: 'postgres', reason: 'operations share connections and caches' },
  { file: 'connection/announcements.ts', store: 'postgres', reason: 'only PostgreSQL has several servers' },
  { file: 'connection/await-all.ts', store: 'postgres', reason: protocol },
  { file: 'connection/connection.ts', store: 'postgres', reason: protocol },
  { file: 'connection/connections.ts', store: 'postgres', reason: protocol },
  { file: 'connection/copy-query.ts', store: 'postgres', reason: protocol },
  {
    file: 'connection/database-clock.ts',
    store: 'postgres',
    reason: 'a SQLite file has no clock of its own',
  },
  { file: 'connection/encode-arrays.ts', store: 'postgres', reason: protocol },
  { file: 'connection/parse-values.ts', store: 'postgres', reason: protocol },
  { file: 'connection/prepared-query.ts', store: 'postgres', reason: protocol },
  { file: 'connection/shared-connection.ts', store: 'postgres', reason: protocol },
  { file: 'connection/stuck-connections.ts', store: 'postgres', reason: protocol },
  { file: 'connection/tls-connection.ts', store: 'postgres', reason: protocol },
  { file: 'connection/host-choice.ts', store: 'postgres', reason: protocol },
  { file: 'connection/tls-contexts.ts', store: 'postgres', reason: protocol },
  { file: 'connection/tls-errors.ts', store: 'postgres', reason: protocol },
  { file: 'connection/vacuum.ts', store: 'postgres', reason: 'only PostgreSQL keeps dead row versions' },
  { file: 'counts/letter-count-rollups.ts', store: 'postgres', reason: 'counts have several slots to sum' },
  { file: 'items/complete-plain.ts', store: 'postgres', reason: 'saves a round trip per batch' },
  { file: 'items/copy-rows.ts', store: 'postgres', reason: 'the binary format of COPY' },
  { file: 'items/lease-cursors.ts', store: 'postgres', reason: leasePath },
  { file: 'items/lease-ends.ts', store: 'postgres', reason: leasePath },
  { file: 'items/lease-one.ts', store: 'postgres', reason: leasePath },
  { file: 'items/leased-row-locations.ts', store: 'postgres', reason: leasePath },
  { file: 'items/leased-row.ts', store: 'postgres', reason: leasePath },
  { file: 'items/locate-rows.ts', store: 'postgres', reason: 'keeps the planner from a bad join' },
  { file: 'letters/letter-snapshots.ts', store: 'postgres', reason: 'letters are read ahead without locks' },
  { file: 'letters/prefilter.ts', store: 'postgres', reason: 'the database filters before rows travel' },
  { file: 'migrations/0019_audit-replace.ts', store: 'sqlite', reason: 'only SQLite replaces rows' },
  { file: 'migrations/0018_disk-reserve.ts', store: 'postgres', reason: 'SQLite reserves space with a file' },
  { file: 'migrations/dlq-schema.ts', store: 'postgres', reason: 'views for people who query PostgreSQL' },
  { file: 'migrations/dlq-statements.ts', store: 'postgres', reason: 'statements of existing programs' },
  { file: 'queues/queue-locks.ts', store: 'postgres', reason: 'several servers change queues' },
]

function listFiles(store: 'sqlite' | 'postgres'): string[] {
  const folder = `${storage}/${store}/`
  const tracked = execFileSync('git', ['ls-files', '-co', '--exclude-standard', folder], {
    cwd: repository,
    encoding: 'utf8',
  })
  return tracked
    .split('\n')
    .filter(
      (path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && existsSync(join(repository, path)),
    )
    .map((path) => path.slice(folder.length))
}

const problems = compareStores({ sqlite: listFiles('sqlite'), postgres: listFiles('postgres') }, differences)
for (const problem of problems) console.log(problem)
if (problems.length > 0) process.exitCode = 1
console.log(`${problems.length} problems, ${differences.length} listed differences`)

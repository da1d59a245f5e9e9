/** Empty stores for benchmarks, in the temporary folder. They are removed when the process ends. */
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { StoreTarget } from '../server/src/storage/open-storage.ts'
import { stopServices } from '../tools/services/index.ts'
import { createDatabaseOn } from '../tools/services/postgres/database.ts'
import { supervise } from '../tools/services/process/supervise.ts'
import type { StoreKind } from './arguments.ts'
import { startBenchPostgres } from './postgres.ts'
import { runSql } from './run-sql.ts'
import { UnmetRequirement } from './unmet-requirement.ts'

export type BenchStore = Readonly<{
  target: Exclude<StoreTarget, { kind: 'memory' }>
  sizeBytes(): Promise<number>
  /** Call it after the store is closed. */
  remove(): Promise<void>
}>

export interface BenchStores extends AsyncDisposable {
  /** A description of the databases, for the notes of the benchmark. */
  readonly notes: readonly string[]
  /** Creates an empty store. */
  create(kind: StoreKind): Promise<BenchStore>
}

export const storeNames: Readonly<Record<StoreKind, string>> = {
  postgres: 'PostgreSQL',
  sqlite: 'SQLite file',
}

export async function openBenchStores(
  kinds: readonly StoreKind[],
  options: Readonly<{ isWarmedUp?: boolean }> = {},
): Promise<BenchStores> {
  // Supervised like a service, so that no gigabytes remain after Ctrl-C.
  const files = await supervise('bench')
  const end = async () => {
    await stopServices()
    await files.end()
  }
  let serverUrl = ''
  const notes: string[] = []
  if (kinds.includes('postgres')) {
    const server = await startBenchPostgres(options)
    if (!server.isFound) {
      await end()
      throw new UnmetRequirement(
        `PostgreSQL is not available (use --store sqlite to run without it): ${server.reason}`,
      )
    }
    serverUrl = server.url
    notes.push(server.description)
  }
  let count = 0
  const create = async (kind: StoreKind): Promise<BenchStore> => {
    if (kind === 'sqlite') {
      const path = join(files.folder, `${++count}.db`)
      return {
        target: { kind, path },
        sizeBytes: async () => readFileSize(path) + readFileSize(`${path}-wal`),
        remove: async () => {
          for (const each of [path, `${path}-wal`, `${path}-shm`]) rmSync(each, { force: true })
        },
      }
    }
    const { url, drop } = await createDatabaseOn(serverUrl)
    const sizeBytes = async () => {
      const [row] = await runSql(url, ['select pg_database_size(current_database())::text as bytes'])
      return Number(row?.bytes)
    }
    return { target: { kind, url }, sizeBytes, remove: drop }
  }
  return { notes, create, [Symbol.asyncDispose]: end }
}

function readFileSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

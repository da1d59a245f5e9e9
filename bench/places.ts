/** Where a benchmark keeps its stores: everything is under the temporary folder, and goes when we do. */
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { StoreTarget } from '../server/src/storage/open-storage.ts'
import { stopServices } from '../tools/services/index.ts'
import { createDatabaseOn } from '../tools/services/postgres/database.ts'
import { supervise } from '../tools/services/process/supervise.ts'
import type { StoreKind } from './arguments.ts'
import { CannotRun } from './cannot-run.ts'
import { benchPostgres } from './postgres.ts'
import { runSql } from './run-sql.ts'

export type Place = Readonly<{
  target: Exclude<StoreTarget, { kind: 'memory' }>
  sizeBytes(): Promise<number>
  /** Once nobody has it open. */
  remove(): Promise<void>
}>

export interface Places extends AsyncDisposable {
  /** What they run on, for the notes of the benchmark. */
  readonly notes: readonly string[]
  /** An empty store of its own. */
  create(kind: StoreKind): Promise<Place>
}

export const storeNames: Readonly<Record<StoreKind, string>> = {
  postgres: 'PostgreSQL',
  sqlite: 'SQLite file',
}

export async function openPlaces(
  kinds: readonly StoreKind[],
  options: Readonly<{ isSeasoned?: boolean }> = {},
): Promise<Places> {
  // Watched over like a service, so that gigabytes do not stay behind after Ctrl-C.
  const files = await supervise('bench')
  const end = async () => {
    await stopServices()
    await files.end()
  }
  let serverUrl = ''
  const notes: string[] = []
  if (kinds.includes('postgres')) {
    const server = await benchPostgres(options)
    if (!server.isFound) {
      await end()
      throw new CannotRun(`this needs PostgreSQL, or --store sqlite: ${server.reason}`)
    }
    serverUrl = server.url
    notes.push(server.about)
  }
  let count = 0
  const create = async (kind: StoreKind): Promise<Place> => {
    if (kind === 'sqlite') {
      const path = join(files.folder, `${++count}.db`)
      return {
        target: { kind, path },
        sizeBytes: async () => sizeOf(path) + sizeOf(`${path}-wal`),
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

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

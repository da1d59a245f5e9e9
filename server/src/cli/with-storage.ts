import { existsSync } from 'node:fs'
import type { Settings } from '../config/settings/settings.ts'
import { maskStore } from '../config/store/store-text.ts'
import { KnownError } from '../errors.ts'
import type { Storage, StoreReads } from '../storage/contract/storage.ts'
import { openStorage, openStorageToRead, type StoreOptions } from '../storage/open-storage.ts'
import { createSystemClock } from '../system-clock.ts'
import type { Context } from './context.ts'
import { openTarget } from './open-target.ts'

export type StorageWork = Readonly<{
  /** Creates a missing store. */
  mayCreate: boolean
  work: (storage: Storage) => Promise<number>
}>

/** Opens the store, which updates its schema, runs the work, and closes the store. */
export async function withStorage(
  settings: Settings,
  context: Context,
  { mayCreate, work }: StorageWork,
): Promise<number> {
  const opened = await openTarget(settings, context, (_, sentence) => context.report(`redrive: ${sentence}`))
  const { target } = opened
  try {
    const storage = await openStorage(target, {
      machineClock: createSystemClock(),
      sqliteLockWaitMs: settings['sqlite.lock_wait'],
      mustExist: settings.must_exist || !mayCreate,
      onCreated: () => context.report(`redrive: created new store at ${maskStore(settings.store)}`),
      ...toPostgresOptions(settings),
    })
    try {
      return await work(storage)
    } finally {
      await storage.close()
    }
  } finally {
    await opened.close()
  }
}

/** Opens the store for reading, also while a server uses it, runs the work, and closes the store. */
export async function withStorageToRead(
  settings: Settings,
  context: Context,
  work: (storage: StoreReads) => Promise<number>,
): Promise<number> {
  const opened = await openTarget(settings, context, (_, sentence) => context.report(`redrive: ${sentence}`))
  const { target } = opened
  try {
    if (target.kind === 'memory')
      throw new KnownError('STORE_MISSING', 'a store in memory has no file to read')
    if (target.kind === 'sqlite' && !existsSync(target.path)) {
      throw new KnownError('STORE_MISSING', `there is no store at ${target.path}`)
    }
    const storage = await openStorageToRead(target, toPostgresOptions(settings))
    try {
      return await work(storage)
    } finally {
      await storage.close()
    }
  } finally {
    await opened.close()
  }
}

function toPostgresOptions(settings: Settings): StoreOptions {
  return {
    postgresPoolMax: settings['postgres.connections_max'],
    postgresConnectTimeoutMs: settings['postgres.connect_timeout'],
    postgresIdleMax: settings['database.max_idle_conns'] ?? 0,
    postgresLifetimeMs: settings['database.conn_max_lifetime'],
    isReadOnly: settings.read_only,
  }
}

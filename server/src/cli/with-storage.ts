import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Settings } from '../config/settings.ts'
import { KnownError } from '../errors.ts'
import type { Storage } from '../storage/contract/storage.ts'
import { openStorage } from '../storage/open-storage.ts'
import { createSystemClock } from '../system-clock.ts'
import type { Context } from './context.ts'
import { openTarget } from './open-target.ts'

export type StorageWork = Readonly<{
  /** Creates a missing SQLite file. */
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
    if (!mayCreate && target.kind === 'sqlite' && !existsSync(resolve(context.folder, target.path))) {
      throw new KnownError('STORE_MISSING', `there is no store at ${target.path}`)
    }
    const storage = await openStorage(target, {
      clock: createSystemClock(),
      postgresPoolMax: settings['postgres.connections_max'],
      postgresConnectTimeoutMs: settings['postgres.connect_timeout'],
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

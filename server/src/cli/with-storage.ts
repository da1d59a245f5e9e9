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
  /** Whether a SQLite file that is not there yet is made. */
  mayCreate: boolean
  work: (storage: Storage) => Promise<number>
}>

/** Opens the store, which brings its schema up to date, does the work, and closes it. */
export async function withStorage(
  settings: Settings,
  context: Context,
  { mayCreate, work }: StorageWork,
): Promise<number> {
  const opened = await openTarget(settings, context, (_, sentence) => context.tell(`redrive: ${sentence}`))
  const { target } = opened
  try {
    if (!mayCreate && target.kind === 'sqlite' && !existsSync(resolve(context.folder, target.path))) {
      throw new KnownError('STORE_MISSING', `there is no store at ${target.path}`)
    }
    const storage = await openStorage(target, {
      clock: createSystemClock(),
      postgresPoolMax: settings['postgres.pool_max'],
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

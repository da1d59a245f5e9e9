import type { LoadedSettings } from '../config/load-settings.ts'
import { maskStore } from '../config/store-text.ts'
import type { Context } from './context.ts'
import { exitCodes } from './exit-codes.ts'
import { withStorage } from './with-storage.ts'

/** Brings the store's schema up to date, so that the first server to start need not. */
export async function migrate({ settings }: LoadedSettings, context: Context): Promise<number> {
  return withStorage(settings, context, {
    mayCreate: true,
    work: async () => {
      context.print(`the store ${maskStore(settings.store)} has the schema of this version`)
      return exitCodes.ok
    },
  })
}

import type { LoadedSettings } from '../config/settings/load-settings.ts'
import { maskStore } from '../config/store/store-text.ts'
import type { Context } from './context.ts'
import { exitCodes } from './exit-codes.ts'
import { withStorage } from './with-storage.ts'

/** Updates the schema of the store, so that the first server to start need not do it. */
export async function migrate({ settings }: LoadedSettings, context: Context): Promise<number> {
  return withStorage(settings, context, {
    mayCreate: true,
    work: async () => {
      context.print(`the schema of the store ${maskStore(settings.store)} is up to date`)
      return exitCodes.ok
    },
  })
}

import type { LoadedSettings } from '../config/settings/load-settings.ts'
import { maskStore } from '../config/store/store-text.ts'
import { type Difference, describeActual, describeSubject } from '../storage/contract/difference.ts'
import type { Context } from './context.ts'
import { exitCodes } from './exit-codes.ts'
import { withStorageToRead } from './with-storage.ts'

/** Checks every count against the rows it counts. Changes nothing, and works while servers run. */
export async function verify({ settings }: LoadedSettings, context: Context): Promise<number> {
  return withStorageToRead(settings, context, async (storage) => {
    const differences = await storage.verify()
    for (const difference of differences) context.print(describeDifference(difference))
    if (differences.length > 0) return exitCodes.failed
    context.print(`every count in ${maskStore(settings.store)} agrees with its rows`)
    return exitCodes.ok
  })
}

function describeDifference(difference: Difference): string {
  const { count, counted } = difference
  return `${describeSubject(difference)}: ${count} is counted as ${counted}, but ${describeActual(difference)}`
}

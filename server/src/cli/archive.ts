import { toRetention } from '../config/retention.ts'
import type { LoadedSettings } from '../config/settings/load-settings.ts'
import { createEngine } from '../engine/create-engine.ts'
import { KnownError } from '../errors.ts'
import { createLetters } from '../letters/create-letters.ts'
import type { Letters, RetentionDone } from '../letters/letters.ts'
import { retentionBatchMax } from '../letters/retention.ts'
import type { Context } from './context.ts'
import { exitCodes } from './exit-codes.ts'
import { withStorage } from './with-storage.ts'

/**
 * Runs the retention of `letters.retention_interval` once and completely, for cron. The summary is a line of
 * JSON.
 */
export async function archive(
  { settings }: LoadedSettings,
  context: Context,
  { batchSize, isDryRun }: Readonly<{ batchSize: string; isDryRun: boolean }>,
): Promise<number> {
  const isWholeNumber = /^[0-9]{1,9}$/.test(batchSize)
  if (!isWholeNumber || Number(batchSize) < 1 || Number(batchSize) > retentionBatchMax) {
    throw new KnownError(
      'SETTING_INVALID',
      `--batch-size is ${batchSize}; it must be a whole number from 1 to ${retentionBatchMax}`,
    )
  }
  return withStorage(settings, context, {
    mayCreate: false,
    work: async (storage) => {
      const { clock } = storage
      const engine = createEngine(storage, { clock, isTicking: false })
      try {
        const letters = createLetters({ storage, engine, clock, retention: toRetention(settings) })
        await runRetention(letters, context, Number(batchSize), isDryRun)
      } finally {
        await engine.close()
      }
      return exitCodes.ok
    },
  })
}

async function runRetention(
  letters: Letters,
  context: Context,
  batchSize: number,
  isDryRun: boolean,
): Promise<void> {
  const wouldBe = isDryRun ? 'would be ' : ''
  const onDone = ({ queue, archived, purged }: RetentionDone): void =>
    context.report(
      `queue ${queue}: ${archived} ${wouldBe}archived, ${purged} ${wouldBe}removed from the archive`,
    )
  const queues = isDryRun
    ? await letters.previewRetention()
    : await letters.runRetention({ batchSize, onDone })
  if (isDryRun) for (const queue of queues) onDone(queue)
  const sum = (name: 'archived' | 'purged') => queues.reduce((total, queue) => total + queue[name], 0)
  const sums = { archived: sum('archived'), purged: sum('purged'), queues }
  context.print(JSON.stringify(isDryRun ? { is_dry_run: true, ...sums } : sums))
}

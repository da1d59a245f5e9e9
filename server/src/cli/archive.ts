import type { LoadedSettings } from '../config/load-settings.ts'
import { toRetention } from '../config/retention.ts'
import { createEngine } from '../engine/create-engine.ts'
import { KnownError } from '../errors.ts'
import { createLetters } from '../letters/create-letters.ts'
import type { Letters, RetentionDone } from '../letters/letters.ts'
import { retentionBatchMax } from '../letters/retention.ts'
import { createSystemClock } from '../system-clock.ts'
import type { Context } from './context.ts'
import { exitCodes } from './exit-codes.ts'
import { withStorage } from './with-storage.ts'

/** What the server does every `letters.retention_interval`, once and to its end: for cron. The summary is one line of JSON. */
export async function archive(
  { settings }: LoadedSettings,
  context: Context,
  { batchSize, isDryRun }: Readonly<{ batchSize: string; isDryRun: boolean }>,
): Promise<number> {
  const isWhole = /^[0-9]{1,9}$/.test(batchSize)
  if (!isWhole || Number(batchSize) < 1 || Number(batchSize) > retentionBatchMax) {
    throw new KnownError(
      'SETTING_INVALID',
      `--batch-size is ${batchSize}; it must be a whole number from 1 to ${retentionBatchMax}`,
    )
  }
  return withStorage(settings, context, {
    mayCreate: false,
    work: async (storage) => {
      const clock = createSystemClock()
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
  const would = isDryRun ? 'would be ' : ''
  const onDone = ({ queue, archived, purged }: RetentionDone): void =>
    context.tell(`queue ${queue}: ${archived} ${would}archived, ${purged} ${would}removed from the archive`)
  const queues = isDryRun
    ? await letters.previewRetention()
    : await letters.runRetention({ batchSize, onDone })
  if (isDryRun) for (const queue of queues) onDone(queue)
  const sum = (name: 'archived' | 'purged') => queues.reduce((total, queue) => total + queue[name], 0)
  const sums = { archived: sum('archived'), purged: sum('purged'), queues }
  context.print(JSON.stringify(isDryRun ? { dry_run: true, ...sums } : sums))
}

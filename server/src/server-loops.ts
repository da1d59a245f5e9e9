import { usPerMs } from './core/time/instant.ts'
import { createLoop, type Loop } from './engine/loop.ts'
import { createLetterLoops, type LetterLoops } from './letters/loops.ts'
import { createReconciler, type Reconciler } from './ops/health/reconciler.ts'
import type { ServerClock } from './server-clock.ts'
import type { ServerOptions } from './server-options.ts'
import type { StoreParts } from './server-store.ts'
export type BackgroundLoops = Readonly<{
  reconciler: Reconciler
  reconcileLoop: Loop
  letterLoops: LetterLoops
  keyUseLoop: Loop
}>

const keyUseMs = 10_000

export function createBackgroundLoops(
  { settings, log }: ServerOptions,
  { connection, engine, letters, access }: StoreParts,
  clock: ServerClock,
  owner: string,
  onCompared: (differences: number) => void,
): BackgroundLoops {
  const reconcileMs = settings['counts.reconcile_interval']
  const intervalUs = reconcileMs * usPerMs
  const reconciler = createReconciler({
    storage: connection.storage,
    engine,
    clock,
    owner,
    intervalUs,
    onCompared,
    log,
  })
  const reconcileLoop = createLoop(reconcileMs, reconciler.pass, (error) =>
    log.warn({ err: error }, 'counts could not be compared with their rows; will retry'),
  )
  const letterLoops = createLetterLoops(
    letters,
    {
      autoMs: settings['letters.redrive_interval'],
      campaignsMs: settings['letters.campaign_interval'],
      retentionMs: settings['letters.retention_interval'],
    },
    (pass, error) => log.warn({ err: error, pass }, 'background work on dead letters failed; will retry'),
  )
  const keyUseLoop = createLoop(
    keyUseMs,
    async () => access().recordKeyUses(),
    (error) => log.warn({ err: error }, 'the use of keys could not be recorded; will retry'),
  )
  return { reconciler, reconcileLoop, letterLoops, keyUseLoop }
}

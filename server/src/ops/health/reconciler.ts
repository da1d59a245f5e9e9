import type { Clock, Instant } from '../../core/time/instant.ts'
import type { Engine } from '../../engine/engine.ts'
import { type Difference, describeSubject } from '../../storage/contract/difference.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import type { Logger } from '../log/log.ts'

export type ReconcileState = Readonly<{
  /**
   * When this server last compared counts with rows; null if it never did, because another server does it.
   */
  at: Instant | null
  /** The number of wrong counts in the last comparison. Always zero unless there is a defect. */
  differences: number
  /** The number of wrong counts since the start of this server. */
  differencesTotal: number
}>

export interface Reconciler {
  /** Compares and repairs the counts, unless a server of the cluster did so within the interval. */
  pass(): Promise<void>
  state(): ReconcileState
}

/**
 * Recounts the rows under a cluster-wide lock. The lock is held for the whole interval, so that twenty
 * servers recount once, not twenty times. If its holder ends, another server takes over after the interval.
 */
export function createReconciler(
  parts: Readonly<{
    storage: () => StoreReads
    engine: () => Pick<Engine, 'write'>
    clock: Clock
    owner: string
    intervalUs: number
    /** Reports each comparison of this server. */
    onCompared?(differences: number): void
    log: Logger
  }>,
): Reconciler {
  const { clock, owner, intervalUs, log } = parts
  let state: ReconcileState = { at: null, differences: 0, differencesTotal: 0 }

  return {
    state: () => state,
    pass: async () => {
      const storage = parts.storage()
      const now = clock.now()
      const name = 'dlq-summary-updater'
      const [lock] = await parts
        .engine()
        .write([{ op: 'acquire-lock', name, owner, now, deadline: now + intervalUs }])
      if (lock === null) return
      const differences = await storage.reconcile(lock)
      for (const difference of differences) log.error({ difference }, describeDifference(difference))
      parts.onCompared?.(differences.length)
      state = {
        at: now,
        differences: differences.length,
        differencesTotal: state.differencesTotal + differences.length,
      }
    },
  }
}

function describeDifference(difference: Difference): string {
  const { count, counted, actual } = difference
  return `count ${count} of ${describeSubject(difference)} was ${counted} but the rows show ${actual}; repaired`
}

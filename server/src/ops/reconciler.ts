import type { Clock, Instant } from '../core/instant.ts'
import type { Engine } from '../engine/engine.ts'
import { type Difference, describeSubject } from '../storage/contract/difference.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import type { Logger } from './log.ts'

export type Reconciled = Readonly<{
  /** When this server last compared counts with rows; null: not yet, another server does it. */
  at: Instant | null
  /** Counts that were wrong then. Should be zero, always. */
  differences: number
  /** The same, over the life of this server. */
  differencesTotal: number
}>

export interface Reconciler {
  /** Compares and mends, if no server of the cluster did so within the interval. */
  pass(): Promise<void>
  state(): Reconciled
}

/**
 * Recounts the rows under a cluster-wide lock. The lock is kept until the interval is over, so that
 * twenty servers recount once, not twenty times; when its holder dies another takes over after that.
 */
export function createReconciler(
  parts: Readonly<{
    storage: () => StoreReads
    engine: () => Pick<Engine, 'write'>
    clock: Clock
    owner: string
    intervalUs: number
    log: Logger
  }>,
): Reconciler {
  const { clock, owner, intervalUs, log } = parts
  let state: Reconciled = { at: null, differences: 0, differencesTotal: 0 }

  return {
    state: () => state,
    pass: async () => {
      const storage = parts.storage()
      const now = clock.now()
      const name = 'reconcile-counts'
      const [lock] = await parts
        .engine()
        .write([{ op: 'acquire-lock', name, owner, now, deadline: now + intervalUs }])
      if (lock === null) return
      const differences = await storage.reconcile(lock)
      for (const difference of differences) log.error({ difference }, sentenceOf(difference))
      state = {
        at: now,
        differences: differences.length,
        differencesTotal: state.differencesTotal + differences.length,
      }
    },
  }
}

function sentenceOf(difference: Difference): string {
  const { count, counted, actual } = difference
  return `count ${count} of ${describeSubject(difference)} was ${counted} but the rows show ${actual}; repaired`
}

import { type Clock, type Instant, later } from '../../core/instant.ts'
import type { Engine } from '../../engine/engine.ts'
import type { HeldLock } from '../../storage/contract/locks.ts'

/**
 * Cluster-wide locks of this server, kept over several steps, so that not every step must acquire its lock.
 */
export interface HeldLocks {
  /** Returns null if another server has the lock. */
  hold(name: string): Promise<HeldLock | null>
  /** Forgets a lock that was lost. */
  forget(name: string): void
  release(name: string): Promise<void>
  releaseAll(): Promise<void>
}

/** After a crash of this server, another one can take over the lock after this time. */
const holdUs = 15_000_000
/** If another server has the lock, try again after this time, not with every pass. */
const busyUs = 1_000_000

export function createHeldLocks(
  parts: Readonly<{ engine: Pick<Engine, 'write'>; clock: Clock; owner: string }>,
): HeldLocks {
  const { engine, clock, owner } = parts
  const held = new Map<string, Readonly<{ lock: HeldLock; until: Instant }>>()
  const busyUntil = new Map<string, Instant>()

  const release = async (name: string): Promise<void> => {
    const had = held.get(name)
    held.delete(name)
    if (had !== undefined) await engine.write([{ op: 'release-lock', lock: had.lock }])
  }
  return {
    hold: async (name) => {
      const now = clock.now()
      const had = held.get(name)
      if (had !== undefined && now < had.until - holdUs / 2) return had.lock
      if (had === undefined && now < (busyUntil.get(name) ?? 0)) return null
      const deadline = later(now, holdUs)
      const [lock] = await engine.write([{ op: 'acquire-lock', name, owner, now, deadline }])
      held.delete(name)
      busyUntil.delete(name)
      if (lock === null) busyUntil.set(name, now + busyUs)
      else held.set(name, { lock, until: deadline })
      return lock
    },
    forget: (name) => {
      held.delete(name)
    },
    release,
    releaseAll: async () => {
      for (const name of [...held.keys()]) await release(name)
    },
  }
}

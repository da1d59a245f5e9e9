import { addDuration, type Clock, type Instant } from '../../core/time/instant.ts'
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
  // Times are compared on both sides: after the clock was set back, a time in the future means nothing.
  const isSince = (at: Instant | undefined, now: Instant, us: number): boolean =>
    at !== undefined && at <= now && now < at + us
  const held = new Map<string, Readonly<{ lock: HeldLock; at: Instant }>>()
  const busyAt = new Map<string, Instant>()

  const release = async (name: string): Promise<void> => {
    const had = held.get(name)
    held.delete(name)
    if (had !== undefined) await engine.write([{ op: 'release-lock', lock: had.lock }])
  }
  return {
    hold: async (name) => {
      const now = clock.now()
      const had = held.get(name)
      if (had !== undefined && isSince(had.at, now, holdUs / 2)) return had.lock
      if (had === undefined && isSince(busyAt.get(name), now, busyUs)) return null
      const deadline = addDuration(now, holdUs)
      const [lock] = await engine.write([{ op: 'acquire-lock', name, owner, now, deadline }])
      held.delete(name)
      busyAt.delete(name)
      if (lock === null) busyAt.set(name, now)
      else held.set(name, { lock, at: now })
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

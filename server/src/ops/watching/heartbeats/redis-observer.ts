/**
 * Observes the workers in Redis. One server of a cluster reads, under a lock; the others only check that they
 * could. A server that cannot read gives the lock away.
 */
import type { Clock } from '../../../core/time/instant.ts'
import type { Heartbeat } from '../../../core/watching/worker.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { HeldLock } from '../../../storage/contract/locks.ts'
import type { Logger } from '../../log/log.ts'
import type { RedisState } from '../watching.ts'
import type { RedisReader } from './redis-reader.ts'

export interface RedisObserver {
  /** The heartbeats in Redis; null: another server reads them, or nobody can. Never rejects for Redis. */
  pass(): Promise<readonly Heartbeat[] | null>
  state(): RedisState
  close(): Promise<void>
}

const lockName = 'worker-heartbeats'

export const noRedis: RedisObserver = {
  pass: async () => null,
  state: () => ({ isConfigured: false, reason: null, changedAt: 0, unreadable: null }),
  close: async () => undefined,
}

export function createRedisObserver(
  parts: Readonly<{
    reader: RedisReader
    engine: () => Pick<Engine, 'write'>
    clock: Clock
    owner: string
    /** How long the lock outlives a server that ended without releasing it. */
    lockUs: number
    log: Logger
  }>,
): RedisObserver {
  const { reader, engine, clock, owner, lockUs, log } = parts
  let lock: HeldLock | null = null
  let reason: string | null = null
  let changedAt = clock.now()
  let unreadable: string | null = null

  const note = (found: string | null): void => {
    if ((found === null) === (reason === null)) {
      reason = found
      return
    }
    reason = found
    changedAt = clock.now()
    if (found === null) log.info('heartbeats in Redis can be read again')
    else log.warn({ reason: found }, 'heartbeats in Redis cannot be read; will retry')
  }
  const noteUnreadable = (keys: readonly string[]): void => {
    const found = keys.length === 0 ? null : `keys that are no heartbeats, such as ${keys[0]}`
    if (found !== null && unreadable === null) log.warn({ keys }, 'Redis has keys that are no heartbeats')
    unreadable = found
  }
  const release = async (): Promise<void> => {
    const held = lock
    lock = null
    if (held !== null) await engine().write([{ op: 'release-lock', lock: held }])
  }
  return {
    pass: async () => {
      const now = clock.now()
      try {
        await reader.ping()
      } catch (error) {
        note(describe(error))
        await release()
        return null
      }
      const acquire = { op: 'acquire-lock', name: lockName, owner, now, deadline: now + lockUs } as const
      const [held] = await engine().write([acquire])
      lock = held
      if (held === null) {
        note(null)
        return null
      }
      try {
        const { heartbeats, unreadableKeys } = await reader.read(() => clock.now())
        note(null)
        noteUnreadable(unreadableKeys)
        return heartbeats
      } catch (error) {
        note(describe(error))
        await release()
        return null
      }
    },
    state: () => ({ isConfigured: true, reason, changedAt, unreadable }),
    close: async () => {
      await release().catch(() => undefined)
      await reader.close()
    },
  }
}

/** The message of an error may contain the address, so only its code is shown if it has one. */
function describe(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  if (typeof code === 'string') return `cannot reach Redis: ${code}`
  const message = error instanceof Error ? error.message : String(error)
  return `cannot read Redis: ${message.slice(0, 200)}`
}

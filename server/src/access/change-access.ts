import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../core/time/instant.ts'
import type { Attribution, Engine } from '../engine/engine.ts'
import type { AccessChange } from '../storage/contract/access.ts'
import type { AuditEntry } from '../storage/contract/audit.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { changesCredentials } from '../storage/shared/rows/access-rows.ts'
import { retryOnConflict } from './retry-on-conflict.ts'

/** Changes with their audit row. */
export type PlannedChange = Readonly<
  { changes: readonly AccessChange[] } & Pick<AuditEntry, 'action' | 'target' | 'details' | 'namespace'>
>

/**
 * Runs `plan`, which reads rows and checks the change, and writes its result. If another change was committed
 * in the meantime, the plan runs again. Resolves when the change is effective on every server.
 */
export type ChangeAccess = (plan: () => Promise<PlannedChange>, attribution: Attribution) => Promise<void>

export type ChangeAccessParts = Readonly<{
  storage: Pick<StoreReads, 'readAccessState'>
  engine: Pick<Engine, 'write'>
  clock: Clock
  /** Called after a change that can change what a credential allows. It may reject. */
  onChanged(): Promise<void>
  /** How long other servers may use what they read before the change. 0: there are no others. */
  propagationMs: number
}>

export function createChangeAccess(parts: ChangeAccessParts): ChangeAccess {
  const { storage, engine, clock, onChanged, propagationMs } = parts
  return async (plan, attribution) => {
    const changes = await retryOnConflict(async () => {
      const { version } = await storage.readAccessState()
      const { changes, ...action } = await plan()
      const entry: AuditEntry = { at: clock.now(), ...action, ...attribution }
      await engine.write([
        { op: 'change-access', version, changes },
        { op: 'audit', entries: [entry] },
      ])
      return changes
    })
    if (!changesCredentials(changes)) return
    // The change is committed. If the store cannot be read now, this server trusts nothing that it remembers.
    const refreshed = onChanged().catch(() => undefined)
    await Promise.all([refreshed, propagationMs > 0 ? sleep(propagationMs) : undefined])
  }
}

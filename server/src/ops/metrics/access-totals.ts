/** How often this server refused calls because of access control and quotas. */
import { Counter, type Registry } from 'prom-client'
import { LabelledTotals } from './labelled-totals.ts'

const quotas = ['queues', 'items', 'bytes', 'requests'] as const
type QuotaName = (typeof quotas)[number]

/** `internal`: calls of `/internal/v1`, by reason. `quotas`: calls over a quota, by namespace. */
export type AccessTotals = Readonly<{
  internal: LabelledTotals
  quotas: Readonly<Record<QuotaName, LabelledTotals>>
}>

export function createAccessTotals(): AccessTotals {
  const byQuota = Object.fromEntries(quotas.map((quota) => [quota, new LabelledTotals()]))
  return { internal: new LabelledTotals(), quotas: byQuota as AccessTotals['quotas'] }
}

export function registerAccessTotals(registry: Registry, totals: AccessTotals): void {
  const registers = [registry]
  new Counter({
    name: 'internal_auth_failed_total',
    help: 'Calls of /internal/v1 that were refused: invalid_key, or ip_denied for an address outside of the networks.',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset()
      for (const [reason, total] of totals.internal.entries()) this.inc({ reason }, total)
    },
  })
  new Counter({
    name: 'redrive_quota_refusals_total',
    help: 'Calls that this server refused because of the quota of a namespace: queues, items, bytes or requests.',
    labelNames: ['namespace', 'quota'],
    registers,
    collect() {
      this.reset()
      for (const quota of quotas) {
        for (const [namespace, total] of totals.quotas[quota].entries()) this.inc({ namespace, quota }, total)
      }
    },
  })
}

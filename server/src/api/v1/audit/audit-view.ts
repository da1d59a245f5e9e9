/** Audit rows in answers. */
import { type Static, Type } from 'typebox'
import { systemNamespace } from '../../../core/items/queue.ts'
import type { RetryPolicy } from '../../../core/items/retry.ts'
import { formatDuration } from '../../../core/time/duration.ts'
import type { Instant } from '../../../core/time/instant.ts'
import { decodeSpec } from '../../../letters/campaigns/document.ts'
import { toLetterStatus } from '../../../ops/metrics/letter-status.ts'
import type { AuditRow } from '../../../storage/contract/audit.ts'
import type { ListedState } from '../../../storage/contract/items.ts'
import { component } from '../../http/openapi/annotations.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { viewSpec } from '../campaigns/campaign-view.ts'
import { viewRetry } from '../queues/queue-view.ts'
import { nullable, time } from '../values/schemas.ts'

export const AuditView = component(
  'AuditEntry',
  Type.Object({
    id: Type.Integer({ description: 'Number of the audit row.' }),
    at: time('When the change was made.'),
    actor: Type.String({ description: 'The person or program that made the change.' }),
    key_prefix: nullable(
      Type.String({ description: 'The visible part of the API key of the actor; null: no key was used.' }),
    ),
    address: nullable(
      Type.String({
        description: 'The network address of the client; null: the change came from no request.',
      }),
    ),
    namespace: Type.String({ description: 'The namespace of the changed object.' }),
    action: Type.String({ description: 'The kind of change, such as letter.redrive.' }),
    target: Type.String({ description: 'The changed letter, queue or campaign.' }),
    reason: Type.String({ description: 'The reason that the actor gave.' }),
    request_id: Type.String({ description: 'Id of the request that made the change.' }),
    outcome: Type.Union([Type.Literal('done'), Type.Literal('partial')], {
      description:
        'partial: some of the named objects were refused; `details.refused` has their number by reason.',
    }),
    details: Type.Unsafe<Details>(
      Type.Unknown({ description: 'Further facts, which depend on the action.' }),
    ),
  }),
)

export function viewAudit(row: AuditRow): Static<typeof AuditView> {
  const { id, at, actor, action, target, reason, requestId } = row
  const { namespace = systemNamespace, address = null, keyPrefix = null } = row
  return {
    id,
    at: formatInstant(at),
    actor,
    key_prefix: keyPrefix,
    address,
    namespace,
    action,
    target,
    reason,
    request_id: requestId,
    // Only changes have rows: a call that was refused as a whole has none.
    outcome: row.details.refused === undefined ? 'done' : 'partial',
    details: viewDetails(row),
  }
}

type Details = Readonly<Record<string, unknown>>

/**
 * Shows details with the names of this API. The store has the names of the code, and times and durations as
 * numbers.
 */
export function viewDetails({ action, details }: Pick<AuditRow, 'action' | 'details'>): Details {
  if (action !== 'campaign.create') return viewObject(details)
  const { spec, ...rest } = details
  return { ...viewSpec(decodeSpec(spec)), ...viewObject(rest) }
}

/**
 * Names of the store that differ from the names of this API by more than their case. Rows of earlier versions
 * have `expireUs`, `keepDoneUs`, `leaseUs` and `redrives`.
 */
const names: Readonly<Record<string, string>> = {
  expireUs: 'expire_timeout',
  isDeadAllowed: 'include_dead',
  isForced: 'force',
  keepDoneUs: 'done_retention',
  leaseUs: 'lease_timeout',
  redrives: 'retry_count',
}

function viewObject(details: Details): Details {
  return Object.fromEntries(Object.entries(details).map(([name, value]) => viewField(name, value)))
}

function viewField(name: string, value: unknown): [string, unknown] {
  const shown = names[name] ?? toSnakeCase(name)
  if (name.endsWith('Us') && typeof value === 'number')
    return [names[name] ?? toSnakeCase(name.slice(0, -2)), formatDuration(value)]
  if (/(At|Before)$/.test(name) && typeof value === 'number') return [shown, formatInstant(value as Instant)]
  if (name === 'states' && Array.isArray(value)) return ['status', [...new Set(value.map(toLetterStatus))]]
  // The audit row has the policy as the store wrote it.
  if (name === 'retry' || name === 'backoff') return [shown, viewRetry(value as RetryPolicy)]
  if (!isObject(value)) return [shown, value]
  if (name === 'letters' || name === 'discarded')
    return [shown, sumByStatus(value as Readonly<Record<ListedState, number>>)]
  // The names in `refused` are codes.
  return [shown, name === 'refused' ? value : viewObject(value)]
}

function sumByStatus(counts: Readonly<Record<string, number>>): Details {
  const sums: Record<string, number> = {}
  for (const [state, count] of Object.entries(counts)) {
    const status = toLetterStatus(state as ListedState)
    sums[status] = (sums[status] ?? 0) + count
  }
  return sums
}

function isObject(value: unknown): value is Details {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/**
 * What an audit row says beside who, what and why, in the names of this API: kept are the names of the code, with times and
 * durations as numbers.
 */
import { formatDuration } from '../../../core/duration.ts'
import type { Instant } from '../../../core/instant.ts'
import type { RetryPolicy } from '../../../core/retry.ts'
import { decodeSpec } from '../../../letters/campaigns/document.ts'
import { letterStatus } from '../../../ops/letter-status.ts'
import type { AuditRow } from '../../../storage/contract/audit.ts'
import type { ListedState } from '../../../storage/contract/items.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { viewSpec } from '../campaigns/campaign-view.ts'
import { viewRetry } from '../queues/queue-view.ts'

type Details = Readonly<Record<string, unknown>>

export function viewDetails({ action, details }: Pick<AuditRow, 'action' | 'details'>): Details {
  if (action !== 'campaign.create') return viewObject(details)
  const { spec, ...rest } = details
  return { ...viewSpec(decodeSpec(spec)), ...viewObject(rest) }
}

/** What is called otherwise here. */
const names: Readonly<Record<string, string>> = {
  isDeadAllowed: 'include_dead',
  isForced: 'force',
  redrives: 'retry_count',
}

function viewObject(details: Details): Details {
  return Object.fromEntries(Object.entries(details).map(([name, value]) => viewField(name, value)))
}

function viewField(name: string, value: unknown): [string, unknown] {
  const shown = names[name] ?? snake(name)
  if (name.endsWith('Us') && typeof value === 'number')
    return [snake(name.slice(0, -2)), formatDuration(value)]
  if (/(At|Before)$/.test(name) && typeof value === 'number') return [shown, formatInstant(value as Instant)]
  if (name === 'states' && Array.isArray(value)) return ['status', [...new Set(value.map(letterStatus))]]
  // As the stores wrote them.
  if (name === 'retry' || name === 'backoff') return [shown, viewRetry(value as RetryPolicy)]
  if (!isObject(value)) return [shown, value]
  if (name === 'letters') return [shown, byStatus(value as Readonly<Record<ListedState, number>>)]
  // Its names are codes.
  return [shown, name === 'refused' ? value : viewObject(value)]
}

function byStatus(counts: Readonly<Record<string, number>>): Details {
  const sums: Record<string, number> = {}
  for (const [state, count] of Object.entries(counts)) {
    const status = letterStatus(state as ListedState)
    sums[status] = (sums[status] ?? 0) + count
  }
  return sums
}

function isObject(value: unknown): value is Details {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/**
 * Counts events of this server until the next pass adds them to the totals in the store. All servers show the
 * totals of the store. A server that is killed loses the events since its last pass.
 */
import type { EngineEvent } from '../../engine/events.ts'
import type { EventTotal } from '../../storage/contract/workers.ts'

export interface EventTotals {
  count(event: EngineEvent): void
  add(total: EventTotal): void
  /** Takes everything that was counted since the last call. */
  take(): readonly EventTotal[]
  /** Returns what could not be stored. */
  restore(totals: readonly EventTotal[]): void
}

export function createEventTotals(): EventTotals {
  let counts = new Map<string, EventTotal>()
  const add = ({ name, label, count }: EventTotal): void => {
    const key = `${name}\n${label}`
    counts.set(key, { name, label, count: (counts.get(key)?.count ?? 0) + count })
  }
  return {
    add,
    count: (event) => {
      const total = toTotal(event)
      if (total !== undefined) add(total)
    },
    take: () => {
      const taken = [...counts.values()]
      counts = new Map()
      return taken
    },
    restore: (totals) => {
      for (const total of totals) add(total)
    },
  }
}

/** Labels are outcomes and refusals, of which there are few. */
function toTotal(event: EngineEvent): EventTotal | undefined {
  switch (event.type) {
    case 'letters-captured':
    case 'letters-redriven':
    case 'letters-discarded':
    case 'letters-archived':
    case 'letters-purged':
      return { name: event.type, label: '', count: event.count }
    case 'redrives-ended':
      return { name: event.type, label: event.outcome, count: event.count }
    case 'redrives-refused':
      return { name: event.type, label: event.refusal, count: event.count }
    case 'items-dropped':
      return { name: event.type, label: '', count: event.items.length }
    default:
      return undefined
  }
}

/**
 * Events report what a committed write changed, for observers such as metrics and the log. Each write emits
 * at most a few: counts are summed per command, so that a step of 1,000 letters is one event.
 */
import type { QueueName } from '../core/ids/ids.ts'
import type { Outcome } from '../core/items/item.ts'
import type { DeliveryChange } from '../storage/contract/deliveries.ts'
import type { Import, ImportResult, ItemChange } from '../storage/contract/items.ts'
import type { EndRedriveResult, RedriveRefusal, RedriveResult } from '../storage/contract/letters.ts'
import type { Command, ResultOf } from '../storage/contract/storage.ts'

export type EngineEvent =
  /** Letters that died outside of Redrive were stored. Letters that were there already are not counted. */
  | Readonly<{ type: 'letters-captured'; queue: QueueName; count: number }>
  | Readonly<{ type: 'letters-redriven'; count: number }>
  /** Letters that were named for a redrive and not sent. */
  | Readonly<{ type: 'redrives-refused'; refusal: RedriveRefusal; count: number }>
  | Readonly<{ type: 'redrives-ended'; outcome: Outcome; count: number }>
  | Readonly<{ type: 'letters-discarded'; count: number }>
  | Readonly<{ type: 'letters-archived'; queue: QueueName; count: number }>
  /** Letters were removed from the archive. */
  | Readonly<{ type: 'letters-purged'; queue: QueueName; count: number }>
  /** Items died and were deleted, because their queue has no dead queue. */
  | Readonly<{ type: 'items-dropped'; queue: QueueName; items: readonly ItemChange[] }>
  /** A webhook consumer was created or changed. */
  | Readonly<{ type: 'consumer-changed' }>
  /** The delivery to the consumer with this number changed. */
  | Readonly<{ type: 'delivery-changed'; consumer: number; change: DeliveryChange }>

export interface Emitter<Event> {
  emit(event: Event): void
  /** Returns a function that ends the subscription. */
  subscribe(listener: (event: Event) => void): () => void
}
export type EventEmitter = Emitter<EngineEvent>

/** A listener that throws is reported and does not keep the others from the event. */
export function createEmitter<Event>(onError: (error: unknown) => void): Emitter<Event> {
  const listeners = new Set<(event: Event) => void>()
  return {
    emit: (event) => {
      for (const listener of listeners) {
        try {
          listener(event)
        } catch (error) {
          onError(error)
        }
      }
    },
    subscribe: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

const none: readonly EngineEvent[] = []

/** The events of one command of a committed write. */
export function toEvents<C extends Command>(command: C, result: ResultOf<C>): readonly EngineEvent[]
export function toEvents(command: Command, result: unknown): readonly EngineEvent[] {
  switch (command.op) {
    case 'complete':
      return createRedriveEndedEvents(readChanges(result as ResultOf<typeof command>))
    case 'retry':
    case 'advance': {
      const changes = readChanges(result as ResultOf<typeof command>)
      return [...createRedriveEndedEvents(changes), ...createItemDroppedEvents(changes)]
    }
    case 'import':
      return createCountEvent(countCaptured(command, result as ResultOf<typeof command>), (count) => ({
        type: 'letters-captured',
        queue: command.queue,
        count,
      }))
    case 'redrive':
      return redriveEvents(result as ResultOf<typeof command>)
    case 'end-redrives': {
      const ended = (result as ResultOf<typeof command>).flatMap(({ state }: EndRedriveResult, at) =>
        state === null ? [] : [command.ends[at]?.outcome ?? 'unknown'],
      )
      return countEach(ended, (outcome, count) => ({ type: 'redrives-ended', outcome, count }))
    }
    case 'discard': {
      const discarded = (result as ResultOf<typeof command>).filter(({ isDiscarded }) => isDiscarded)
      return createCountEvent(discarded.length, (count) => ({ type: 'letters-discarded', count }))
    }
    case 'clear':
    case 'delete':
      return createCountEvent((result as ResultOf<typeof command>).discarded, (count) => ({
        type: 'letters-discarded',
        count,
      }))
    case 'archive':
      return createCountEvent((result as ResultOf<typeof command>).archived, (count) => ({
        type: 'letters-archived',
        queue: command.queue,
        count,
      }))
    case 'purge-archive':
      return createCountEvent((result as ResultOf<typeof command>).purged, (count) => ({
        type: 'letters-purged',
        queue: command.queue,
        count,
      }))
    case 'put-consumer':
    case 'delete-consumer':
      return [{ type: 'consumer-changed' }]
    case 'put-delivery': {
      const { consumer, change } = command
      const isReported = change !== undefined && (result as ResultOf<typeof command>).isPut
      return isReported ? [{ type: 'delivery-changed', consumer, change }] : none
    }
    default:
      return none
  }
}

/** The changes of a command that settles items or lets time pass; none if it was refused. */
export function readChanges(result: ResultOf<Extract<Command, { op: 'complete' | 'retry' | 'advance' }>>) {
  return 'changes' in result ? result.changes : []
}

function createCountEvent(count: number, event: (count: number) => EngineEvent): readonly EngineEvent[] {
  return count === 0 ? none : [event(count)]
}

function countEach<T>(values: readonly T[], event: (value: T, count: number) => EngineEvent): EngineEvent[] {
  const counts = new Map<T, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts].map(([value, count]) => event(value, count))
}

function countCaptured({ items }: Import, imported: readonly ImportResult[]): number {
  return items.filter((item, at) => item.origin != null && imported[at]?.id != null).length
}

function redriveEvents(results: readonly RedriveResult[]): readonly EngineEvent[] {
  const refusals = results.flatMap((result) => (result.isStarted ? [] : [result.refusal]))
  return [
    ...createCountEvent(results.length - refusals.length, (count) => ({ type: 'letters-redriven', count })),
    ...countEach(refusals, (refusal, count) => ({ type: 'redrives-refused', refusal, count })),
  ]
}

function createRedriveEndedEvents(changes: readonly ItemChange[]): readonly EngineEvent[] {
  // Most changes are of ordinary items: allocate only for redrives.
  let outcomes: Outcome[] | undefined
  for (const { outcome } of changes) {
    if (outcome === undefined) continue
    outcomes ??= []
    outcomes.push(outcome)
  }
  if (outcomes === undefined) return none
  return countEach(outcomes, (outcome, count) => ({ type: 'redrives-ended', outcome, count }))
}

function createItemDroppedEvents(changes: readonly ItemChange[]): readonly EngineEvent[] {
  const dropped = changes.filter(({ to, failure }) => to === 'removed' && failure !== null)
  if (dropped.length === 0) return none
  return [...Map.groupBy(dropped, ({ fromQueue }) => fromQueue)].map(([queue, items]) => ({
    type: 'items-dropped',
    queue,
    items,
  }))
}

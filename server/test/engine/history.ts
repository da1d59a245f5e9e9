/**
 * What clients of an engine asked and were told, and when: enough to say afterwards whether it can all
 * be true.
 *
 * Time is a number that grows with each call and each answer. A call took effect at some moment between
 * the two; nobody knows which. A history is right (linearizable) if such moments can be chosen that, for
 * each item, lease and end of lease take turns, and each answer is the one that moment would have given.
 * The turns of an item are a chain, so choosing the earliest possible moment at each turn is enough.
 */
import type { Instant } from '../../src/core/instant.ts'

/** `from`: when it was asked; `to`: when it was answered. */
export type Span = Readonly<{ from: number; to: number }>
export type Produced = Span & Readonly<{ partition: number; ids: readonly string[] }>
export type Held = Readonly<{ id: string; rootId: string; attempts: number; deadline: Instant }>
export type LeaseAnswered = Span & Readonly<{ client: string; partition: number; items: readonly Held[] }>
/** `nextId`: the id under which it waits again, where the answer said so. */
export type Settled = Span &
  Readonly<{ as: 'completed' | 'retried' | 'dead'; id: string; nextId: string | null }>
/** The call was refused because this item was not leased then. */
export type Refused = Span & Readonly<{ id: string }>

type Lease = Span & Held & Readonly<{ client: string; partition: number }>

export class History {
  readonly produced: Produced[] = []
  readonly leased: LeaseAnswered[] = []
  readonly settled: Settled[] = []
  readonly refused: Refused[] = []
  /** When leases could end by themselves. */
  readonly advanced: Span[] = []
  /** The clock showed `now` from `at` on. */
  readonly #clock: { at: number; now: Instant }[]
  #time = 0

  constructor(now: Instant) {
    this.#clock = [{ at: 0, now }]
  }

  /** The next moment. */
  next(): number {
    return ++this.#time
  }

  setClock(now: Instant): void {
    this.#clock.push({ at: this.next(), now })
  }

  /** What the clock showed at a moment. */
  clockAt(time: number): Instant {
    return this.#clock.findLast(({ at }) => at <= time)?.now ?? 0
  }

  /** When the clock first showed this or later. */
  reachedAt(now: Instant): number {
    return this.#clock.find((step) => step.now >= now)?.at ?? Number.POSITIVE_INFINITY
  }
}

export type Rules = Readonly<{
  leaseUs: number
  /** `advance` passes over nothing: no other transaction can have an item under its hands. */
  isAdvanceExact: boolean
  /** No client left while items were on their way to it: what was put back may look passed over. */
  isOrderExact: boolean
}>

/** All that cannot be true, in words. */
export function faultsOf(history: History, rules: Rules): string[] {
  return [
    ...faultsOfItems(history, rules),
    ...faultsOfAnswers(history, rules),
    ...(rules.isOrderExact ? faultsOfOrder(history) : []),
  ]
}

/** One at a time, one attempt after the other, and nothing after the end. */
function faultsOfItems(history: History, rules: Rules): string[] {
  const faults: string[] = []
  const settledById = Map.groupBy(history.settled, ({ id }) => id)
  const refusedById = Map.groupBy(history.refused, ({ id }) => id)
  const leasesByRoot = Map.groupBy(leasesOf(history), ({ rootId }) => rootId)
  const produced = new Map(history.produced.flatMap((call) => call.ids.map((id) => [id, call] as const)))
  const ids = leasesOf(history).map(({ id }) => id)
  for (const id of repeated(ids)) faults.push(`${id} was leased twice under one id`)

  for (const [rootId, leases] of leasesByRoot) {
    const birth = produced.get(rootId)
    if (birth === undefined) {
      faults.push(`${rootId} was leased and never produced`)
      continue
    }
    let time = birth.from
    leases.sort((a, b) => a.attempts - b.attempts)
    for (const [index, lease] of leases.entries()) {
      const what = `attempt ${lease.attempts} of ${rootId} by ${lease.client}`
      if (lease.attempts !== index + 1) faults.push(`${what} is its lease number ${index + 1}`)
      time = Math.max(time, lease.from)
      if (time >= lease.to) faults.push(`${what} was leased while it was held or before it was there`)

      const ends = settledById.get(lease.id) ?? []
      const isLast = index === leases.length - 1
      if (ends.length > 1) faults.push(`${what} was settled ${ends.length} times`)
      const [end] = ends
      if (end === undefined) {
        const endedAt = earliestEnd(history, lease.deadline, time)
        if (endedAt === undefined && !isLast) faults.push(`${what} was followed by another, but never ended`)
        for (const refusal of refusedById.get(lease.id) ?? []) {
          if (endedAt === undefined || endedAt >= refusal.to) faults.push(`${what} was refused while held`)
        }
        if (endedAt !== undefined) time = Math.max(time, endedAt)
        continue
      }
      time = Math.max(time, end.from)
      if (time >= end.to) faults.push(`${what} was ${end.as} before it was leased`)
      if (end.as !== 'retried' && !isLast) faults.push(`${what} was ${end.as}, and leased again`)
      for (const refusal of refusedById.get(lease.id) ?? []) {
        if (time >= refusal.to) faults.push(`${what} was refused while held`)
      }
      if (rules.isAdvanceExact) {
        const reachedAt = history.reachedAt(lease.deadline)
        const over = history.advanced.find(({ from }) => from > lease.to && from > reachedAt)
        if (over !== undefined && end.from > over.to) faults.push(`${what} was ${end.as} after its end`)
      }
    }
  }
  return faults
}

/** The first moment from `time` on at which a lease with this deadline could end by itself. */
function earliestEnd(history: History, deadline: Instant, time: number): number | undefined {
  const reachedAt = Math.max(history.reachedAt(deadline), time)
  const moments = history.advanced.flatMap(({ from, to }) =>
    to > reachedAt ? Math.max(from, reachedAt) : [],
  )
  const earliest = Math.min(...moments)
  return Number.isFinite(earliest) ? earliest : undefined
}

function faultsOfAnswers(history: History, { leaseUs }: Rules): string[] {
  const faults = repeated(history.produced.flatMap(({ ids }) => ids)).map((id) => `${id} was given twice`)
  for (const { from, to, client, items } of history.leased) {
    const ids = items.map(({ id }) => id)
    if (ids.join() !== ids.toSorted().join()) faults.push(`${client} was given ${ids} out of order`)
    for (const { id, deadline } of items) {
      const isRight = deadline >= history.clockAt(from) + leaseUs && deadline <= history.clockAt(to) + leaseUs
      if (!isRight) faults.push(`the lease of ${id} by ${client} has a wrong deadline`)
    }
  }
  return faults
}

/**
 * First in, first out, per partition: an item is not passed over. It was passed over if it was there
 * before a younger one can have been leased, and was still there after that lease was answered: nobody had asked
 * yet for the lease that it was then given.
 */
function faultsOfOrder(history: History): string[] {
  const faults: string[] = []
  const leases = leasesOf(history)
  const leaseOf = new Map(leases.map((lease) => [lease.id, lease]))
  const partitionOf = new Map(leases.map(({ id, partition }) => [id, partition]))
  const waited = [
    ...history.produced.flatMap(({ ids, partition, ...span }) =>
      ids.map((id) => ({ ...span, id, partition })),
    ),
    ...history.settled.flatMap(({ id, nextId, from, to }) =>
      nextId === null ? [] : { id: nextId, from, to, partition: partitionOf.get(id) ?? -1 },
    ),
  ]
  const createdFrom = new Map(waited.map(({ id, from }) => [id, from]))
  for (const [partition, older] of Map.groupBy(waited, (each) => each.partition)) {
    const younger = leases.filter((lease) => lease.partition === partition)
    for (const item of older) {
      const leasedFrom = leaseOf.get(item.id)?.from ?? Number.POSITIVE_INFINITY
      const over = younger.find(
        ({ id, from, to }) =>
          id > item.id && item.to < Math.max(from, createdFrom.get(id) ?? 0) && to < leasedFrom,
      )
      if (over !== undefined)
        faults.push(`${item.id} of partition ${partition} was passed over for ${over.id}`)
    }
  }
  return faults
}

function leasesOf(history: History): Lease[] {
  return history.leased.flatMap(({ items, ...call }) => items.map((item) => ({ ...call, ...item })))
}

function repeated(values: readonly string[]): string[] {
  const seen = new Set<string>()
  return values.filter((value) => seen.size === seen.add(value).size)
}

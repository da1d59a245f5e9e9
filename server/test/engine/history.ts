/**
 * Records what clients of an engine asked, the answers, and when: enough to decide afterwards whether all
 * answers together are possible.
 *
 * Time is a number that grows with each call and each answer. A call took effect at some unknown moment
 * between the two. A history is right (linearizable) if moments exist such that, for each item, lease and
 * end of lease alternate, and each answer is the one that the engine would have given at that moment. The
 * steps of an item form a chain, so it is enough to choose the earliest possible moment for each step.
 */
import type { Instant } from '../../src/core/time/instant.ts'

/** `from`: when the call started; `to`: when it was answered. */
export type Span = Readonly<{ from: number; to: number }>
export type Produced = Span & Readonly<{ partition: number; ids: readonly string[] }>
export type Held = Readonly<{ id: string; rootId: string; attempts: number; deadline: Instant }>
export type LeaseAnswered = Span & Readonly<{ client: string; partition: number; items: readonly Held[] }>
/** `nextId`: the id under which the item waits again, if the answer contains it. */
export type Settled = Span &
  Readonly<{ as: 'completed' | 'retried' | 'dead'; id: string; nextId: string | null }>
/** A call that was refused because this item was not leased. */
export type Refused = Span & Readonly<{ id: string }>

type Lease = Span & Held & Readonly<{ client: string; partition: number }>

export class History {
  readonly produced: Produced[] = []
  readonly leased: LeaseAnswered[] = []
  readonly settled: Settled[] = []
  readonly refused: Refused[] = []
  /** When leases could end at their deadline. */
  readonly advanced: Span[] = []
  /** The clock shows `now` from the moment `at`. */
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

  /** The time that the clock showed at a moment. */
  clockAt(time: number): Instant {
    return this.#clock.findLast(({ at }) => at <= time)?.now ?? 0
  }

  /** The moment from which the clock showed this time or later. */
  reachedAt(now: Instant): number {
    return this.#clock.find((step) => step.now >= now)?.at ?? Number.POSITIVE_INFINITY
  }
}

export type Rules = Readonly<{
  leaseTimeoutUs: number
  /** `advance` skips no item: no other transaction can have one locked. */
  isAdvanceExact: boolean
  /** No client left while items were on their way to it: an item that was put back may look skipped. */
  isOrderExact: boolean
}>

/** Describes every contradiction in the history. */
export function faultsOf(history: History, rules: Rules): string[] {
  return [
    ...faultsOfItems(history, rules),
    ...faultsOfAnswers(history, rules),
    ...(rules.isOrderExact ? faultsOfOrder(history) : []),
  ]
}

/** Each item has one lease at a time, successive attempts, and no lease after its end. */
function faultsOfItems(history: History, rules: Rules): string[] {
  const facts: ItemFacts = {
    history,
    rules,
    settledById: Map.groupBy(history.settled, ({ id }) => id),
    refusedById: Map.groupBy(history.refused, ({ id }) => id),
  }
  const produced = new Map(history.produced.flatMap((call) => call.ids.map((id) => [id, call] as const)))
  const leases = leasesOf(history)
  const faults = repeated(leases.map(({ id }) => id)).map((id) => `${id} was leased twice under one id`)
  for (const [rootId, chain] of Map.groupBy(leases, (lease) => lease.rootId)) {
    const birth = produced.get(rootId)
    if (birth === undefined) faults.push(`${rootId} was leased and never produced`)
    else faults.push(...faultsOfChain(facts, rootId, birth.from, chain))
  }
  return faults
}

type ItemFacts = Readonly<{
  history: History
  rules: Rules
  settledById: ReadonlyMap<string, readonly Settled[]>
  refusedById: ReadonlyMap<string, readonly Refused[]>
}>
/** `time`: the earliest moment at which the lease can have ended. */
type Checked = Readonly<{ faults: readonly string[]; time: number }>

function faultsOfChain(facts: ItemFacts, rootId: string, bornAt: number, chain: Lease[]): string[] {
  const faults: string[] = []
  let time = bornAt
  chain.sort((a, b) => a.attempts - b.attempts)
  for (const [index, lease] of chain.entries()) {
    const what = `attempt ${lease.attempts} of ${rootId} by ${lease.client}`
    if (lease.attempts !== index + 1) faults.push(`${what} is its lease number ${index + 1}`)
    time = Math.max(time, lease.from)
    if (time >= lease.to) faults.push(`${what} was leased while it was held or before it was there`)
    const ends = facts.settledById.get(lease.id) ?? []
    if (ends.length > 1) faults.push(`${what} was settled ${ends.length} times`)
    const isLast = index === chain.length - 1
    const [end] = ends
    const checked =
      end === undefined
        ? checkUnsettled(facts, lease, what, time, isLast)
        : checkSettled(facts, lease, end, what, time, isLast)
    faults.push(...checked.faults)
    time = checked.time
  }
  return faults
}

/** A lease that no call settled can only have ended at its deadline. */
function checkUnsettled(
  { history, refusedById }: ItemFacts,
  lease: Lease,
  what: string,
  time: number,
  isLast: boolean,
): Checked {
  const faults: string[] = []
  const endedAt = earliestEnd(history, lease.deadline, time)
  if (endedAt === undefined && !isLast) faults.push(`${what} was followed by another, but never ended`)
  for (const refusal of refusedById.get(lease.id) ?? []) {
    if (endedAt === undefined || endedAt >= refusal.to) faults.push(`${what} was refused while held`)
  }
  return { faults, time: Math.max(time, endedAt ?? time) }
}

function checkSettled(
  { history, rules, refusedById }: ItemFacts,
  lease: Lease,
  end: Settled,
  what: string,
  leasedAt: number,
  isLast: boolean,
): Checked {
  const faults: string[] = []
  const time = Math.max(leasedAt, end.from)
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
  return { faults, time }
}

/** The first moment from `time` at which a lease with this deadline could have ended. */
function earliestEnd(history: History, deadline: Instant, time: number): number | undefined {
  const reachedAt = Math.max(history.reachedAt(deadline), time)
  const moments = history.advanced.flatMap(({ from, to }) =>
    to > reachedAt ? Math.max(from, reachedAt) : [],
  )
  const earliest = Math.min(...moments)
  return Number.isFinite(earliest) ? earliest : undefined
}

function faultsOfAnswers(history: History, { leaseTimeoutUs }: Rules): string[] {
  const faults = repeated(history.produced.flatMap(({ ids }) => ids)).map((id) => `${id} was given twice`)
  for (const { from, to, client, items } of history.leased) {
    const ids = items.map(({ id }) => id)
    if (ids.join() !== ids.toSorted().join()) faults.push(`${client} was given ${ids} out of order`)
    for (const { id, deadline } of items) {
      const isRight =
        deadline >= history.clockAt(from) + leaseTimeoutUs && deadline <= history.clockAt(to) + leaseTimeoutUs
      if (!isRight) faults.push(`the lease of ${id} by ${client} has a wrong deadline`)
    }
  }
  return faults
}

/**
 * First in, first out, per partition: a lease does not skip an item. An item was skipped if it was available
 * before a younger item can have been leased, and if the call that leased it later started only after the
 * lease of the younger item was answered.
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

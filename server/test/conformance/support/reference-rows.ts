/**
 * The rows of the reference model: items, archive, totals and ids, and the changes that all commands are made
 * of. A list is searched from its start each time, so that there is nothing to get wrong.
 */
import { expect } from 'vitest'
import { copyBase, endRedrive, isRedriving, noDeadline } from '../../../src/core/dead-letters/letter.ts'
import {
  type Failure,
  type Item,
  type ItemHead,
  isLetter,
  type Leased,
  type SentOutcome,
  type Waiting,
  withBytes,
} from '../../../src/core/items/item.ts'
import type { Queue } from '../../../src/core/items/queue.ts'
import { computeDueAt } from '../../../src/core/items/transitions.ts'
import type { Instant } from '../../../src/core/time/instant.ts'
import type { ArchivedItem } from '../../../src/storage/contract/archive.ts'
import type { Counts } from '../../../src/storage/contract/counts.ts'
import type { ItemToImport, NewItem } from '../../../src/storage/contract/items.ts'
import { countGauges, type Gauge } from './store-reads.ts'

export type PartitionRef = Readonly<{ queue: string; partition: number }>
export type Total = Exclude<keyof Counts, Gauge>

/** The queues of the model have no jitter, so the random number has no effect. */
export const noChance = 0.5

const noTotals: Record<Total, number> = {
  accepted: 0,
  completed: 0,
  deadLettered: 0,
  dropped: 0,
  deleted: 0,
  forgotten: 0,
  archived: 0,
  purged: 0,
}

export class ReferenceRows {
  readonly queues = new Map<string, Queue>()
  #items: Item[] = []
  #archive: ArchivedItem[] = []
  /** Queues that have or had letters. */
  readonly #withLetters = new Set<string>()
  readonly #totals = new Map<string, Record<Total, number>>()
  readonly #lastIds = new Map<string, string>()

  /** The items of all queues. */
  get allItems(): readonly Item[] {
    return this.#items
  }

  /** The items of a queue, by id. */
  items(queue: string): Item[] {
    return this.#items.filter((item) => item.queue === queue).toSorted(byId)
  }

  archive(queue: string): ArchivedItem[] {
    const here = this.#archive.filter(({ item }) => item.queue === queue)
    return here.toSorted((a, b) => byId(a.item, b.item))
  }

  /** Root ids, live or archived. */
  letterIds(): string[] {
    return [...this.#items, ...this.#archive.map(({ item }) => item)]
      .filter(isLetter)
      .map((item) => item.rootId)
      .toSorted()
  }

  counts(queue: string): Counts[] {
    return Array.from({ length: this.queue(queue).partitions }, (_, partition) => ({
      ...countGauges(this.#items.filter(isAt({ queue, partition }))),
      ...this.totalsAt({ queue, partition }),
    }))
  }

  nextDueAt(): Instant | null {
    const times = this.#items
      .flatMap((item) => computeDueAt(item, this.queue(item.queue)) ?? [])
      .filter((at) => at < noDeadline)
    return times.length === 0 ? null : Math.min(...times)
  }

  hasOrHadLetters(queue: string): boolean {
    return this.#withLetters.has(queue)
  }

  queue(name: string): Queue {
    const queue = this.queues.get(name)
    if (queue === undefined) throw new Error(`the model has no queue ${name}`)
    return queue
  }

  find(at: PartitionRef, id: string): Item | undefined {
    return this.#items.find(isAt(at, id))
  }

  findBySource(queue: string, sourceId: string): Item | undefined {
    return this.#items.find((item) => item.queue === queue && item.sourceId === sourceId)
  }

  /** Ids grow strictly within a partition. */
  takeNewId(at: PartitionRef, id: string | null | undefined): string {
    if (typeof id !== 'string') throw new Error(`expected a new id, not ${id}`)
    const key = `${at.queue}/${at.partition}`
    expect(id > (this.#lastIds.get(key) ?? ''), `id ${id} is larger than the last one`).toBe(true)
    this.#lastIds.set(key, id)
    return id
  }

  add(item: Item): void {
    this.#items.push(item)
    if (isLetter(item)) this.#withLetters.add(item.queue)
    this.totalsAt(item).accepted++
  }

  replace(before: Readonly<PartitionRef & { id: string }>, after: ItemHead): void {
    this.#items = this.#items.map((item) => (isAt(before, before.id)(item) ? withBytes(after, item) : item))
  }

  remove(item: Item, as: Total): void {
    this.#items = this.#items.filter((other) => other !== item)
    this.totalsAt(item)[as]++
  }

  totalsAt(at: PartitionRef): Record<Total, number> {
    const key = `${at.queue}/${at.partition}`
    const totals = this.#totals.get(key) ?? { ...noTotals }
    this.#totals.set(key, totals)
    return totals
  }

  archiveItem(item: Item, archivedAt: Instant): void {
    this.remove(item, 'archived')
    this.#archive.push({ item, archivedAt })
  }

  findArchived(rootId: string): ArchivedItem | undefined {
    return this.#archive.find(({ item }) => isLetter(item) && item.rootId === rootId)
  }

  removeArchived(archived: ArchivedItem): void {
    this.#archive = this.#archive.filter((other) => other !== archived)
    this.totalsAt(archived.item).archived--
  }

  /** Adds an item that was accepted before. */
  addRestored(item: Item): void {
    this.#items.push(item)
  }

  findLetter(rootId: string): Item | undefined {
    return this.#items.find((item) => isLetter(item) && item.rootId === rootId)
  }

  /** The letter that has this item as its current redrive. */
  findRedrivingLetter(item: Item): Leased | undefined {
    const letter = item.letterId === null ? undefined : this.findLetter(item.letterId)
    if (letter?.state !== 'leased' || !isRedriving(letter)) return undefined
    return letter.letter?.redrives[0]?.number === item.retryCount ? letter : undefined
  }

  /** The outcome, if a letter waits for it. */
  resolveBy(item: Item, now: Instant): SentOutcome | undefined {
    const isAwaited = this.findRedrivingLetter(item) !== undefined
    this.endRedriveBy(item, 'resolved', now)
    return isAwaited ? 'resolved' : undefined
  }

  endRedriveBy(
    item: Item,
    outcome: SentOutcome,
    at: Instant,
    failure = item.failure,
    earlier: readonly Failure[] = [],
  ): void {
    const letter = this.findRedrivingLetter(item)
    if (letter === undefined) return
    const end = { outcome, failure: outcome === 'resolved' ? null : failure, earlier, at, chance: noChance }
    this.replace(letter, endRedrive(letter, end, this.queue(letter.queue).redrive))
  }
}

type ProducedAt = Readonly<PartitionRef & { now: Instant }>

export function newItem(spec: NewItem | ItemToImport, at: ProducedAt, id: string, queue: Queue): Waiting {
  const { lease, ...rest } = spec
  return {
    kind: '',
    encoding: '',
    reference: '',
    key: null,
    headers: [],
    priority: 0,
    attempts: 0,
    attemptsMax: 0,
    availableAt: null,
    expireDeadline: at.now + queue.expireTimeoutUs,
    letterId: null,
    retryCount: 0,
    sourceId: null,
    failure: null,
    origin: null,
    deadLetteredAt: null,
    history: [],
    groupId: null,
    letter: null,
    ...rest,
    id,
    rootId: id,
    queue: at.queue,
    partition: at.partition,
    createdAt: at.now,
    updatedAt: at.now,
    state: 'waiting',
  }
}

export function leaseOf(item: Waiting, holder: string, deadline: Instant): Leased {
  return withBytes({ ...copyBase(item), state: 'leased', lease: { holder, deadline } }, item)
}

/** The store chooses group ids; expect-consistent-letters.ts checks them. */
export function withoutGroup<I extends Item>(item: I): I {
  return { ...item, groupId: null }
}

export function isAt(at: PartitionRef, id?: string): (item: Item) => boolean {
  return (item) =>
    item.queue === at.queue && item.partition === at.partition && (id === undefined || item.id === id)
}

export function byId(a: Item, b: Item): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0
}

/**
 * A store as plain as it can be: a list of items and some sums. It obeys a command after the real store
 * did, takes only what nobody can foretell from the answer (new ids), and checks all the rest of it.
 */
import { expect } from 'vitest'
import { deadLetterOf, deadPartition } from '../../src/core/dead-letter.ts'
import type { Instant } from '../../src/core/instant.ts'
import type { Item, Leased, Waiting } from '../../src/core/item.ts'
import type { Queue } from '../../src/core/queue.ts'
import {
  comeDue,
  complete,
  dueAt,
  expireDeadlineWhenPromoted,
  type Fate,
  giveBack,
} from '../../src/core/transitions.ts'
import type {
  Advance,
  Advanced,
  Archive,
  Archived,
  Change,
  Clear,
  Complete,
  Counts,
  Delete,
  Extend,
  Import,
  Imported,
  ImportedItem,
  LeaseItems,
  NewItem,
  Produce,
  Produced,
  Refusal,
  Retry,
  Settled,
} from '../../src/storage/storage.ts'
import { gaugeOf, gaugesOf } from './store-facts.ts'

type Place = Readonly<{ queue: string; partition: number }>
type Total = Exclude<keyof Counts, 'waiting' | 'scheduled' | 'leased' | 'done' | 'dead'>

const noTotals: Record<Total, number> = {
  accepted: 0,
  completed: 0,
  deadLettered: 0,
  dropped: 0,
  deleted: 0,
  forgotten: 0,
  archived: 0,
}

export class Model {
  readonly queues = new Map<string, Queue>()
  #items: Item[] = []
  #archive: Archived[] = []
  readonly #totals = new Map<string, Record<Total, number>>()
  readonly #lastIds = new Map<string, string>()
  /** Checks that have to wait until the whole command is done. */
  readonly #afterwards: (() => void)[] = []

  /** By id, as a list of the queue shows them. */
  items(queue: string): Item[] {
    return this.#items.filter((item) => item.queue === queue).toSorted(byId)
  }

  archive(queue: string): Archived[] {
    const here = this.#archive.filter(({ item }) => item.queue === queue)
    return here.toSorted((a, b) => byId(a.item, b.item))
  }

  counts(queue: string): Counts[] {
    return Array.from({ length: this.#queue(queue).partitions }, (_, partition) => ({
      ...gaugesOf(this.#items.filter(isAt({ queue, partition }))),
      ...this.#totalsAt({ queue, partition }),
    }))
  }

  nextDueAt(): Instant | null {
    const times = this.#items.flatMap((item) => dueAt(item, this.#queue(item.queue)) ?? [])
    return times.length === 0 ? null : Math.min(...times)
  }

  produce(command: Produce, result: Produced): void {
    const queue = this.#queue(command.queue)
    const deadline = command.now + queue.leaseUs
    expect(result.ids).toHaveLength(command.items.length)
    for (const [index, spec] of command.items.entries()) {
      const waiting = newItem(spec, command, this.#newId(command, result.ids[index]), queue)
      if (spec.lease === undefined) this.#add(waiting)
      else {
        expect(result.deadline).toBe(deadline)
        this.#add({ ...leaseOf(waiting, spec.lease.holder, deadline), attempts: 1 })
      }
    }
  }

  import(command: Import, result: readonly Imported[]): void {
    const queue = this.#queue(command.queue)
    expect(result).toHaveLength(command.items.length)
    for (const [index, spec] of command.items.entries()) {
      const { id = null, ...times } = result[index] ?? {}
      const { sourceId = null } = spec
      const isThere = sourceId !== null && this.#bySource(command.queue, sourceId) !== undefined
      expect(id === null, `import of ${sourceId} is skipped`).toBe(isThere)
      if (id === null) continue
      const item = newItem(spec, command, this.#newId(command, id), queue)
      expect(times).toEqual({ createdAt: item.createdAt, expireDeadline: item.expireDeadline })
      const { attempts = 0, origin = null, failure = null, diedAt = origin ? command.now : null } = spec
      const imported: Waiting = { ...item, sourceId, attempts, origin, failure, diedAt }
      this.#add(spec.lease ? leaseOf(imported, spec.lease.holder, spec.lease.deadline) : imported)
    }
  }

  lease(command: LeaseItems, result: readonly Leased[]): void {
    const queue = this.#queue(command.queue)
    const ready = this.#items
      .filter(isAt(command))
      .filter((item): item is Waiting => item.state === 'waiting' && item.availableAt === null)
      .toSorted((a, b) => b.priority - a.priority || byId(a, b))
    const given = queue.isPaused ? [] : ready.slice(0, command.holders.length)
    const expected = given.map((item, index) => ({
      ...leaseOf(item, command.holders[index] ?? '', command.now + queue.leaseUs),
      attempts: item.attempts + 1,
      updatedAt: command.now,
    }))
    expect(result).toEqual(expected)
    for (const item of expected) this.#replace(item, item)
  }

  complete(command: Complete, result: Settled): void {
    this.#settle(command, command.ids, result, (item) => complete(item, this.#queue(command.queue)))
  }

  retry(command: Retry, result: Settled): void {
    const ids = command.items.map((item) => item.id)
    this.#settle(command, ids, result, (item) => {
      const given = command.items.find((each) => each.id === item.id)
      if (given === undefined) throw new Error('it was named')
      return giveBack(item, given, this.#queue(command.queue), command.now)
    })
  }

  extend(command: Extend, result: Settled): void {
    const refused = this.#refusals(command, command.ids)
    if (refused.length > 0) {
      expectRefused(result, refused)
      return
    }
    const changes = command.ids.map((id): Change => {
      const item = this.#find(command, id) as Leased
      this.#replace(item, {
        ...item,
        lease: { ...item.lease, deadline: command.deadline },
        updatedAt: command.now,
      })
      const { queue, partition } = command
      const from = { fromId: id, fromQueue: queue, fromPartition: partition }
      return { ...from, to: 'leased', because: 'extend', id, queue, partition, failure: item.failure }
    })
    // Whether an extension repeats an earlier failure is nobody's business.
    const plain = (each: readonly Change[]) => each.map(({ failure, ...change }) => change)
    expect(result.isSettled && plain(result.changes)).toEqual(plain(changes))
  }

  advance(command: Advance, result: Advanced): void {
    const due = this.#items
      .map((item) => ({ item, at: dueAt(item, this.#queue(item.queue)) }))
      .filter(({ at }) => at !== null && at <= command.now)
      .toSorted((a, b) => Number(a.at) - Number(b.at) || byId(a.item, b.item))
      .map(({ item }) => item)
    const done = due.slice(0, command.countMax)
    expect(result.changes.map((change) => change.fromId)).toEqual(done.map((item) => item.id))
    if (due.length > command.countMax) expect(result.isMore).toBe(true)
    if (done.length < command.countMax) expect(result.isMore).toBe(false)
    for (const [index, item] of done.entries()) {
      const change = result.changes[index]
      if (change === undefined) throw new Error('as many changes as items')
      this.#apply(item, comeDue(item, this.#queue(item.queue), command.now), command.now, change)
    }
    this.#checkAfterwards()
  }

  delete(command: Delete, result: { removed: number }): void {
    const gone = this.#items.filter(isAt(command)).filter((item) => command.ids.includes(item.id))
    expect(result).toEqual({ removed: gone.length })
    for (const item of gone) this.#remove(item, 'deleted')
  }

  clear(command: Clear, result: { removed: number }): void {
    const asked = { waiting: command.isWaiting, scheduled: command.isScheduled, leased: command.isLeased }
    const gone = this.items(command.queue)
      .filter((item) => command.partition === undefined || item.partition === command.partition)
      .filter((item) => (asked as Record<string, boolean>)[gaugeOf(item)] === true)
      .slice(0, command.countMax)
    expect(result).toEqual({ removed: gone.length })
    for (const item of gone) this.#remove(item, 'deleted')
  }

  /** Which of several that ended at the same instant are taken is the store's choice: `left` says which stayed. */
  archiveUp(command: Archive, result: { archived: number }, left: readonly Item[]): void {
    const ended = this.items(command.queue)
      .flatMap((item) => (item.state === 'done' || item.state === 'dead' ? [item] : []))
      .filter((item) => item.endedAt < command.endedBefore)
    expect(result).toEqual({ archived: Math.min(ended.length, command.countMax) })
    const stayed = ended.filter((item) => left.some(isAt(item, item.id)))
    const taken = ended.filter((item) => !stayed.includes(item))
    expect(taken).toHaveLength(result.archived)
    for (const item of taken) {
      expect(stayed.filter((other) => other.endedAt < item.endedAt)).toEqual([])
      this.#remove(item, 'archived')
      this.#archive.push({ item, archivedAt: command.now })
    }
  }

  #settle(
    command: Complete | Retry,
    ids: readonly string[],
    result: Settled,
    fateOf: (item: Leased) => Fate,
  ): void {
    const refused = this.#refusals(command, ids)
    if (refused.length > 0) {
      expectRefused(result, refused)
      return
    }
    if (!result.isSettled) throw new Error(`nothing was to be refused, but was ${JSON.stringify(result)}`)
    expect(result.changes.map((change) => change.fromId)).toEqual(ids)
    for (const change of result.changes) {
      const item = this.#find(command, change.fromId) as Leased
      this.#apply(item, fateOf(item), command.now, change)
    }
    this.#checkAfterwards()
  }

  #refusals(at: Place, ids: readonly string[]): Refusal[] {
    return ids.flatMap((id, index): Refusal[] => {
      const item = this.#find(at, id)
      const isSettleable = item !== undefined && ['waiting', 'leased'].includes(gaugeOf(item))
      if (!isSettleable || ids.indexOf(id) < index) return [{ id, why: 'missing' }]
      return item.state === 'leased' ? [] : [{ id, why: 'not-leased' }]
    })
  }

  /** Makes of the item what the rules say, and checks what the store said it made of it. */
  #apply(item: Item, fate: Fate, now: Instant, said: Change): void {
    const { queue, partition } = item
    const from = { fromId: item.id, fromQueue: queue, fromPartition: partition, because: fate.because }
    const here = { ...from, queue, partition, id: item.id as string | null }
    switch (fate.to) {
      case 'waiting': {
        const { availableAt, failure } = fate
        // A scheduled item may keep its id until it goes to the tail.
        const id = said.id === item.id && availableAt !== null ? item.id : this.#newId(item, said.id)
        const isPromoted = fate.because === 'schedule'
        const expireDeadline = isPromoted
          ? expireDeadlineWhenPromoted(item, this.#queue(queue), now)
          : item.expireDeadline
        const changed = { id, availableAt, failure, expireDeadline, updatedAt: now }
        this.#replace(item, { ...baseOf(item), ...changed, state: 'waiting' })
        const to = availableAt === null ? 'waiting' : 'scheduled'
        expect({ ...said, failure: null }).toEqual({ ...here, to, id, failure: null })
        return
      }
      case 'done':
        this.#replace(item, { ...baseOf(item), state: 'done', endedAt: now, updatedAt: now })
        expect(said).toEqual({ ...here, to: 'done', failure: null })
        return
      case 'dead': {
        const { failure } = fate
        const diedAt = item.diedAt ?? now
        const ended = { endedAt: now, updatedAt: now, diedAt, failure }
        this.#replace(item, { ...baseOf(item), ...ended, state: 'dead' })
        expect(said).toEqual({ ...here, to: 'dead', failure })
        return
      }
      case 'move': {
        const target = this.#queue(fate.deadQueue)
        this.#remove(item, 'deadLettered')
        let letter = this.#bySource(target.name, item.id)
        if (letter === undefined) {
          const at = { queue: target.name, partition: deadPartition(partition, target) }
          const id = this.#newId(at, said.id)
          letter = deadLetterOf(item, fate.failure, { queue: target, partition: at.partition, id }, now)
          this.#add(letter)
        }
        const { id, rootId } = letter
        const there = { queue: letter.queue, partition: letter.partition, to: 'moved' }
        expect({ ...said, id }).toEqual({ ...from, ...there, id, failure: fate.failure })
        // A letter that was there already may itself go to the tail later in the same command: the id
        // it had and the id it then has are both right.
        this.#afterwards.push(() => {
          const now = this.#items.find((each) => each.queue === letter.queue && each.rootId === rootId)
          expect([id, now?.id]).toContain(said.id)
        })
        return
      }
      case 'remove':
        this.#remove(item, fate.as)
        expect(said).toEqual({ ...here, to: 'removed', id: null, failure: fate.failure })
    }
  }

  #checkAfterwards(): void {
    for (const check of this.#afterwards.splice(0)) check()
  }

  #queue(name: string): Queue {
    const queue = this.queues.get(name)
    if (queue === undefined) throw new Error(`the model has no queue ${name}`)
    return queue
  }

  #find(at: Place, id: string): Item | undefined {
    return this.#items.find(isAt(at, id))
  }

  #bySource(queue: string, sourceId: string): Item | undefined {
    return this.#items.find((item) => item.queue === queue && item.sourceId === sourceId)
  }

  /** Ids grow strictly within a partition. */
  #newId(at: Place, id: string | null | undefined): string {
    if (typeof id !== 'string') throw new Error(`expected a new id, not ${id}`)
    const key = `${at.queue}/${at.partition}`
    expect(id > (this.#lastIds.get(key) ?? ''), `id ${id} is larger than the last one`).toBe(true)
    this.#lastIds.set(key, id)
    return id
  }

  #add(item: Item): void {
    this.#items.push(item)
    this.#totalsAt(item).accepted++
  }

  #replace(before: Readonly<Place & { id: string }>, after: Item): void {
    this.#items = this.#items.map((item) => (isAt(before, before.id)(item) ? after : item))
  }

  #remove(item: Item, as: Total): void {
    this.#items = this.#items.filter((other) => other !== item)
    this.#totalsAt(item)[as]++
  }

  #totalsAt(at: Place): Record<Total, number> {
    const key = `${at.queue}/${at.partition}`
    const totals = this.#totals.get(key) ?? { ...noTotals }
    this.#totals.set(key, totals)
    return totals
  }
}

function newItem(spec: NewItem | ImportedItem, at: Produce | Import, id: string, queue: Queue): Waiting {
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
    expireDeadline: at.now + queue.expireUs,
    letterId: null,
    redrives: 0,
    sourceId: null,
    failure: null,
    origin: null,
    diedAt: null,
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

function leaseOf(item: Waiting, holder: string, deadline: Instant): Leased {
  return { ...baseOf(item), state: 'leased', lease: { holder, deadline } }
}

/** What every state has. */
function baseOf(item: Item): Omit<Waiting, 'state' | 'availableAt'> {
  const { state, availableAt, lease, endedAt, ...base } = item as Item & Record<string, unknown>
  return base as Omit<Waiting, 'state' | 'availableAt'>
}

function isAt(at: Place, id?: string): (item: Item) => boolean {
  return (item) =>
    item.queue === at.queue && item.partition === at.partition && (id === undefined || item.id === id)
}

function byId(a: Item, b: Item): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0
}

function expectRefused(result: Settled, refused: readonly Refusal[]): void {
  const inOrder = (all: readonly Refusal[]): string[] => all.map(({ id, why }) => `${id} ${why}`).toSorted()
  expect(result.isSettled).toBe(false)
  expect(result.isSettled ? [] : inOrder(result.refused)).toEqual(inOrder(refused))
}

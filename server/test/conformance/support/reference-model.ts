/**
 * A store that is as simple as possible: a list of items and some sums. It executes each command after the
 * real store, takes from the result only values that cannot be predicted (new ids), and checks all others.
 *
 * reference-rows.ts has the rows, this file the commands on items, reference-letters.ts those on letters.
 */
import { expect } from 'vitest'
import { createDeadLetter, mapPartition } from '../../../src/core/dead-letters/dead-letter.ts'
import { createLetterFacts, discardLetter, isRedriving } from '../../../src/core/dead-letters/letter.ts'
import { applyTransition } from '../../../src/core/items/apply-transition.ts'
import { type Item, type Leased, type Waiting, withBytes } from '../../../src/core/items/item.ts'
import {
  complete,
  computeDueAt,
  createUnknownOutcome,
  killWithoutLetter,
  onDue,
  retryItem,
  type Transition,
  unlease,
} from '../../../src/core/items/transitions.ts'
import type { Instant } from '../../../src/core/time/instant.ts'
import type {
  Advance,
  AdvanceResult,
  Clear,
  Complete,
  Delete,
  Extend,
  Import,
  ImportResult,
  ItemChange,
  LeaseItems,
  Produce,
  ProduceResult,
  RemoveResult,
  Retry,
  SettleRefusal,
  SettleResult,
  Unlease,
} from '../../../src/storage/contract/items.ts'
import { ReferenceLetters } from './reference-letters.ts'
import {
  byId,
  isAt,
  leaseOf,
  newItem,
  noChance,
  type PartitionRef,
  ReferenceRows,
  withoutGroup,
} from './reference-rows.ts'
import { toGauge } from './store-reads.ts'

/** End times of redrives that a command without a time ended, by root id. The store chooses them. */
export type EndedAt = (rootId: string) => Instant

export class ReferenceModel extends ReferenceRows {
  readonly letters = new ReferenceLetters(this)
  /** Checks that run after the whole command. */
  readonly #afterwards: (() => void)[] = []

  produce(command: Produce, result: ProduceResult): void {
    const queue = this.queue(command.queue)
    const deadline = command.now + queue.leaseTimeoutUs
    expect(result.ids).toHaveLength(command.items.length)
    for (const [index, spec] of command.items.entries()) {
      const waiting = newItem(spec, command, this.takeNewId(command, result.ids[index]), queue)
      if (spec.lease === undefined) this.add(waiting)
      else {
        expect(result.deadline).toBe(deadline)
        this.add({ ...leaseOf(waiting, spec.lease.holder, deadline), attempts: 1 })
      }
    }
  }

  import(command: Import, result: readonly ImportResult[]): void {
    const queue = this.queue(command.queue)
    expect(result).toHaveLength(command.items.length)
    for (const [index, spec] of command.items.entries()) {
      const { id = null, ...times } = result[index] ?? {}
      const { sourceId = null } = spec
      const isThere = sourceId !== null && this.findBySource(command.queue, sourceId) !== undefined
      expect(id === null, `import of ${sourceId} is skipped`).toBe(isThere)
      if (id === null) continue
      const item = newItem(spec, command, this.takeNewId(command, id), queue)
      expect(times).toEqual({ createdAt: item.createdAt, expireDeadline: item.expireDeadline })
      const {
        attempts = 0,
        origin = null,
        failure = null,
        deadLetteredAt = origin ? command.now : null,
      } = spec
      const letter = origin === null ? null : createLetterFacts(command.now, queue.redrive, () => noChance)
      const imported: Waiting = { ...item, sourceId, attempts, origin, failure, deadLetteredAt, letter }
      this.add(spec.lease ? leaseOf(imported, spec.lease.holder, spec.lease.deadline) : imported)
    }
  }

  lease(command: LeaseItems, result: readonly Leased[]): void {
    const queue = this.queue(command.queue)
    const ready = this.allItems
      .filter(isAt(command))
      .filter((item): item is Waiting => item.state === 'waiting' && item.availableAt === null)
      .toSorted((a, b) => b.priority - a.priority || byId(a, b))
    const given = queue.isPaused ? [] : ready.slice(0, command.holders.length)
    const expected = given.map((item, index) => ({
      ...leaseOf(item, command.holders[index] ?? '', command.now + queue.leaseTimeoutUs),
      attempts: item.attempts + 1,
      updatedAt: command.now,
    }))
    expect(result.map(withoutGroup)).toEqual(expected)
    for (const item of expected) this.replace(item, item)
  }

  complete(command: Complete, result: SettleResult): void {
    this.#settle(command, command.ids, result, (item) => complete(item, this.queue(command.queue)))
  }

  retry(command: Retry, result: SettleResult): void {
    const ids = command.items.map((item) => item.id)
    this.#settle(command, ids, result, (item) => {
      const given = command.items.find((each) => each.id === item.id)
      if (given === undefined) throw new Error('it was named')
      return retryItem(item, given, this.queue(command.queue), command.now)
    })
  }

  extend(command: Extend, result: SettleResult): void {
    const refused = this.#refusals(command, command.ids)
    if (refused.length > 0) {
      expectRefused(result, refused)
      return
    }
    const changes = command.ids.map((id): ItemChange => {
      const item = this.find(command, id) as Leased
      this.replace(item, {
        ...item,
        lease: { ...item.lease, deadline: command.deadline },
        updatedAt: command.now,
      })
      const { queue, partition } = command
      const from = { fromId: id, fromQueue: queue, fromPartition: partition }
      return { ...from, to: 'leased', cause: 'extend', id, queue, partition, failure: item.failure }
    })
    // An extension may or may not repeat an earlier failure.
    const plain = (each: readonly ItemChange[]) => each.map(({ failure, ...change }) => change)
    expect(result.isSettled && plain(result.changes)).toEqual(plain(changes))
  }

  unlease(command: Unlease, result: { unleased: number }): void {
    const leased = command.ids.map((id) => this.find(command, id)).filter((item) => item?.state === 'leased')
    for (const item of leased) this.replace(item as Leased, unlease(item as Leased, command.now))
    expect(result.unleased).toBe(leased.length)
  }

  advance(command: Advance, result: AdvanceResult): void {
    const due = this.allItems
      .map((item) => ({ item, at: computeDueAt(item, this.queue(item.queue)) }))
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
      this.#apply(item, onDue(item, this.queue(item.queue), command.now), command.now, change)
    }
    this.#checkAfterwards()
  }

  delete(command: Delete, result: RemoveResult, endedAt: EndedAt): void {
    const named = this.allItems.filter(isAt(command)).filter((item) => command.ids.includes(item.id))
    this.#takeAway(command, named, result, null, endedAt)
  }

  /** A delete of a letter whose redrive is in progress is refused, and changes nothing. */
  isRefused(command: Delete): boolean {
    return this.allItems
      .filter(isAt(command))
      .some((item) => command.ids.includes(item.id) && isRedriving(item))
  }

  clear(command: Clear, result: RemoveResult, endedAt: EndedAt): void {
    const asked = { waiting: command.isWaiting, scheduled: command.isScheduled, leased: command.isLeased }
    const found = this.items(command.queue)
      .filter((item) => command.partition === undefined || item.partition === command.partition)
      .filter((item) => (asked as Record<string, boolean>)[toGauge(item)] === true)
      .slice(0, command.countMax)
    const next = found.length === command.countMax ? (found.at(-1)?.id ?? null) : null
    this.#takeAway(command, found, result, next, endedAt)
  }

  #settle(
    command: Complete | Retry,
    ids: readonly string[],
    result: SettleResult,
    decide: (item: Leased) => Transition,
  ): void {
    const refused = this.#refusals(command, ids)
    if (refused.length > 0) {
      expectRefused(result, refused)
      return
    }
    if (!result.isSettled) throw new Error(`nothing was to be refused, but was ${JSON.stringify(result)}`)
    expect(result.changes.map((change) => change.fromId)).toEqual(ids)
    for (const change of result.changes) {
      const item = this.find(command, change.fromId) as Leased
      this.#apply(item, decide(item), command.now, change)
    }
    this.#checkAfterwards()
  }

  #refusals(at: PartitionRef, ids: readonly string[]): SettleRefusal[] {
    return ids.flatMap((id, index): SettleRefusal[] => {
      const item = this.find(at, id)
      const isSettleable = item !== undefined && ['waiting', 'leased'].includes(toGauge(item))
      if (!isSettleable || isRedriving(item) || ids.indexOf(id) < index) return [{ id, refusal: 'missing' }]
      return item.state === 'leased' ? [] : [{ id, refusal: 'not-leased' }]
    })
  }

  /** Applies the transition to the item and compares the result with the change that the store reported. */
  #apply(item: Item, transition: Transition, now: Instant, reported: ItemChange): void {
    const { queue, partition } = item
    const from = { fromId: item.id, fromQueue: queue, fromPartition: partition, cause: transition.cause }
    const here = { ...from, queue, partition, id: item.id as string | null }
    switch (transition.to) {
      case 'waiting': {
        // A scheduled item may keep its id until it goes to the tail.
        const isKept = reported.id === item.id && transition.availableAt !== null
        const id = isKept ? item.id : this.takeNewId(item, reported.id)
        this.replace(item, { ...applyTransition(item, transition, this.queue(queue), now, () => id), id })
        const to = transition.availableAt === null ? 'waiting' : 'scheduled'
        expect({ ...reported, failure: null }).toEqual({ ...here, to, id, failure: null })
        return
      }
      case 'done':
        this.replace(item, applyTransition(item, transition, this.queue(queue), now, noId))
        expect(reported).toEqual({ ...here, to: 'done', failure: null, outcome: this.resolveBy(item, now) })
        return
      case 'dead':
        this.replace(item, applyTransition(item, transition, this.queue(queue), now, noId))
        expect(reported).toEqual({ ...here, to: 'dead', failure: transition.failure })
        return
      case 'return': {
        const letter = this.findRedrivingLetter(item)
        if (letter === undefined) {
          this.#apply(
            item,
            killWithoutLetter(item, transition.failure, this.queue(queue), transition.cause),
            now,
            reported,
          )
          return
        }
        this.remove(item, 'deadLettered')
        this.endRedriveBy(item, 'failed', now, transition.failure, transition.earlier)
        const there = { queue: letter.queue, partition: letter.partition, id: letter.id, to: 'returned' }
        expect(reported).toEqual({ ...from, ...there, failure: transition.failure, outcome: 'failed' })
        return
      }
      case 'end-redrive':
        throw new Error('redrives to queues have no deadline')
      case 'move':
        this.#applyMove(item, transition, now, reported)
        return
      case 'remove':
        this.remove(item, transition.as)
        expect(reported).toEqual({
          ...here,
          to: 'removed',
          id: null,
          failure: transition.failure,
          outcome: transition.as === 'completed' ? this.resolveBy(item, now) : undefined,
        })
    }
  }

  #applyMove(
    item: Item,
    { deadQueue, failure, cause }: Extract<Transition, { to: 'move' }>,
    now: Instant,
    reported: ItemChange,
  ): void {
    const target = this.queue(deadQueue)
    this.remove(item, 'deadLettered')
    let letter = this.findBySource(target.name, item.id)
    if (letter === undefined) {
      const at = { queue: target.name, partition: mapPartition(item.partition, target) }
      const id = this.takeNewId(at, reported.id)
      const destination = { queue: target, partition: at.partition, id, chance: noChance }
      letter = withBytes(createDeadLetter(item, failure, destination, now), item)
      this.add(letter)
    }
    const { id, rootId, queue, partition } = letter
    const from = { fromId: item.id, fromQueue: item.queue, fromPartition: item.partition, cause }
    expect({ ...reported, id }).toEqual({ ...from, queue, partition, to: 'moved', id, failure })
    // An existing letter may go to the tail later in the same command: its old and its new id are both right.
    this.#afterwards.push(() => {
      const current = this.allItems.find((each) => each.queue === queue && each.rootId === rootId)
      expect([id, current?.id]).toContain(reported.id)
    })
  }

  /** Nothing takes an open letter away: it is discarded, or kept while its redrive is in progress. */
  #takeAway(
    { now, audit }: Delete | Clear,
    found: readonly Item[],
    result: RemoveResult,
    next: string | null,
    endedAt: EndedAt,
  ): void {
    const isOpen = (item: Item): boolean =>
      item.origin !== null && ['waiting', 'leased', 'dead'].includes(item.state)
    const discarded = found.filter((item) => isOpen(item) && !isRedriving(item))
    const gone = found.filter((item) => !isOpen(item) && item.state !== 'discarded')
    expect(result).toEqual({ removed: gone.length, discarded: discarded.length, next })
    for (const item of discarded) {
      const at = now ?? endedAt(item.rootId)
      this.replace(item, withBytes(discardLetter(item, audit?.reason ?? '', at), item))
    }
    for (const item of gone) this.remove(item, 'deleted')
    for (const item of gone) {
      const letter = this.findRedrivingLetter(item)
      if (letter === undefined || (item.state !== 'waiting' && item.state !== 'leased')) continue
      const at = endedAt(letter.rootId)
      this.endRedriveBy(item, 'unknown', at, createUnknownOutcome(letter, at))
    }
  }

  #checkAfterwards(): void {
    for (const check of this.#afterwards.splice(0)) check()
  }
}

function noId(): string {
  throw new Error('only a waiting item gets a new id')
}

function expectRefused(result: SettleResult, refused: readonly SettleRefusal[]): void {
  const inOrder = (all: readonly SettleRefusal[]): string[] =>
    all.map(({ id, refusal }) => `${id} ${refusal}`).toSorted()
  expect(result.isSettled).toBe(false)
  expect(result.isSettled ? [] : inOrder(result.refused)).toEqual(inOrder(refused))
}

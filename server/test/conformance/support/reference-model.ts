/**
 * A store that is as simple as possible: a list of items and some sums. It executes each command after the
 * real store, takes from the result only values that cannot be predicted (new ids), and checks all others.
 */
import { expect } from 'vitest'
import { applyTransition } from '../../../src/core/apply-transition.ts'
import { createDeadLetter, mapPartition } from '../../../src/core/dead-letter.ts'
import type { Instant } from '../../../src/core/instant.ts'
import {
  type Failure,
  type Item,
  type ItemHead,
  isLetter,
  type Leased,
  type Outcome,
  type Waiting,
  withBytes,
} from '../../../src/core/item.ts'
import {
  baseOf,
  discardLetter,
  endRedrive,
  isDue,
  isRedriving,
  newLetterFacts,
  noDeadline,
  postponeRedrive,
  queueOfOrigin,
  replanRedrive,
  restoreLetter,
  startRedrive,
} from '../../../src/core/letter.ts'
import { archivedStates } from '../../../src/core/letter-class.ts'
import { findDiscardRefusal, findRedriveRefusal } from '../../../src/core/letter-decisions.ts'
import type { Queue } from '../../../src/core/queue.ts'
import {
  complete,
  createUnknownOutcome,
  dueAt,
  killWithoutLetter,
  onDue,
  retryItem,
  type Transition,
  unlease,
} from '../../../src/core/transitions.ts'
import type { Archive, ArchivedItem } from '../../../src/storage/contract/archive.ts'
import type { Counts } from '../../../src/storage/contract/counts.ts'
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
  ItemToImport,
  LeaseItems,
  NewItem,
  Produce,
  ProduceResult,
  Retry,
  SettleRefusal,
  SettleResult,
  Unlease,
} from '../../../src/storage/contract/items.ts'
import type {
  DiscardLetters,
  DiscardResult,
  LetterCursor,
  PostponeRedrives,
  PostponeResult,
  PurgeArchive,
  RedriveLetters,
  RedriveRefusal,
  RedriveResult,
  ReplanRedrives,
  ReplanResult,
  RestoreLetters,
  RestoreResult,
} from '../../../src/storage/contract/letters.ts'
import type { Results } from '../../../src/storage/contract/storage.ts'
import { countGauges, type Gauge, toGauge } from './store-reads.ts'

type Place = Readonly<{ queue: string; partition: number }>
type Total = Exclude<keyof Counts, Gauge>

/** End times of redrives that a command without a time ended, by root id. The store chooses them. */
export type EndedAt = (rootId: string) => Instant

/** The queues of the model have no jitter, so the random number has no effect. */
const noChance = 0.5

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

export class ReferenceModel {
  readonly queues = new Map<string, Queue>()
  #items: Item[] = []
  #archive: ArchivedItem[] = []
  /** Queues that have or had letters. */
  readonly #withLetters = new Set<string>()
  readonly #totals = new Map<string, Record<Total, number>>()
  readonly #lastIds = new Map<string, string>()
  /** Checks that run after the whole command. */
  readonly #afterwards: (() => void)[] = []

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
    return Array.from({ length: this.#queue(queue).partitions }, (_, partition) => ({
      ...countGauges(this.#items.filter(isAt({ queue, partition }))),
      ...this.#totalsAt({ queue, partition }),
    }))
  }

  nextDueAt(): Instant | null {
    const times = this.#items
      .flatMap((item) => dueAt(item, this.#queue(item.queue)) ?? [])
      .filter((at) => at < noDeadline)
    return times.length === 0 ? null : Math.min(...times)
  }

  produce(command: Produce, result: ProduceResult): void {
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

  import(command: Import, result: readonly ImportResult[]): void {
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
      const letter = origin === null ? null : newLetterFacts(command.now, queue.redrive, () => noChance)
      const imported: Waiting = { ...item, sourceId, attempts, origin, failure, diedAt, letter }
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
    expect(result.map(withoutGroup)).toEqual(expected)
    for (const item of expected) this.#replace(item, item)
  }

  complete(command: Complete, result: SettleResult): void {
    this.#settle(command, command.ids, result, (item) => complete(item, this.#queue(command.queue)))
  }

  retry(command: Retry, result: SettleResult): void {
    const ids = command.items.map((item) => item.id)
    this.#settle(command, ids, result, (item) => {
      const given = command.items.find((each) => each.id === item.id)
      if (given === undefined) throw new Error('it was named')
      return retryItem(item, given, this.#queue(command.queue), command.now)
    })
  }

  extend(command: Extend, result: SettleResult): void {
    const refused = this.#refusals(command, command.ids)
    if (refused.length > 0) {
      expectRefused(result, refused)
      return
    }
    const changes = command.ids.map((id): ItemChange => {
      const item = this.#find(command, id) as Leased
      this.#replace(item, {
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
    const leased = command.ids.map((id) => this.#find(command, id)).filter((item) => item?.state === 'leased')
    for (const item of leased) this.#replace(item as Leased, unlease(item as Leased, command.now))
    expect(result.unleased).toBe(leased.length)
  }

  advance(command: Advance, result: AdvanceResult): void {
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
      this.#apply(item, onDue(item, this.#queue(item.queue), command.now), command.now, change)
    }
    this.#checkAfterwards()
  }

  delete(command: Delete, result: { removed: number }, endedAt: EndedAt): void {
    const gone = this.#items.filter(isAt(command)).filter((item) => command.ids.includes(item.id))
    expect(result).toEqual({ removed: gone.length })
    this.#takeAway(gone, endedAt)
  }

  clear(command: Clear, result: Results['clear'], endedAt: EndedAt): void {
    const asked = { waiting: command.isWaiting, scheduled: command.isScheduled, leased: command.isLeased }
    const gone = this.items(command.queue)
      .filter((item) => command.partition === undefined || item.partition === command.partition)
      .filter((item) => (asked as Record<string, boolean>)[toGauge(item)] === true)
      .slice(0, command.countMax)
    expect(result).toEqual({ removed: gone.length, isMore: gone.length === command.countMax })
    this.#takeAway(gone, endedAt)
  }

  redrive(command: RedriveLetters, result: readonly RedriveResult[]): void {
    const { actor, now } = command
    expect(result.map(({ letterId }) => letterId)).toEqual(command.letters.map(({ letterId }) => letterId))
    for (const [index, asked] of command.letters.entries()) {
      const letter = this.#letter(asked.letterId)
      const said = result[index]
      const why =
        letter === undefined
          ? [this.#whyNotThere(asked.letterId)]
          : this.#whyNotSent(letter, asked.queue, command)
      if (letter === undefined || why.length > 0) {
        expect(why).toContain(said?.isStarted === false ? said.why : said)
        continue
      }
      if (said?.isStarted !== true)
        throw new Error(`${asked.letterId} was to be sent: ${JSON.stringify(said)}`)
      const name = asked.queue ?? letter.origin?.name ?? ''
      const number = (letter.letter?.redrives[0]?.number ?? 0) + 1
      expect(said).toMatchObject({ queue: name, number })
      const queue = this.#queue(name)
      const at = { queue: name, partition: said.partition, now }
      expect(said.partition).toBeLessThan(queue.partitions)
      const { kind, encoding, reference, key, headers, priority, payload } = letter
      const same = { kind, encoding, reference, key, headers, priority, payload }
      const id = this.#newId(at, said.id)
      this.#add(newItem({ ...same, letterId: letter.rootId, redrives: number }, at, id, queue))
      const target = { kind: 'queue', name, partition: said.partition, id } as const
      const { campaign = null } = asked
      const { edit = null } = said
      this.#replace(
        letter,
        startRedrive(letter, { at: now, deadline: noDeadline, actor, campaign, target, edit }),
      )
    }
  }

  discard(command: DiscardLetters, result: readonly DiscardResult[]): void {
    const expected = command.letters.map(({ letterId, campaign }): DiscardResult => {
      const letter = this.#letter(letterId)
      const why = letter === undefined ? this.#whyNotThere(letterId) : (findDiscardRefusal(letter) ?? null)
      if (letter !== undefined && why === null) {
        this.#replace(letter, discardLetter(letter, command.reason, command.now, campaign?.id))
      }
      return { letterId, isDiscarded: why === null, why }
    })
    expect(result).toEqual(expected)
  }

  restore(command: RestoreLetters, result: readonly RestoreResult[]): void {
    const expected = command.letterIds.map((letterId): RestoreResult => {
      const found = this.#archive.find(({ item }) => isLetter(item) && item.rootId === letterId)
      if (found === undefined) return { letterId, isRestored: false, why: 'missing' }
      const { item } = found
      if (item.sourceId !== null && this.#bySource(item.queue, item.sourceId) !== undefined) {
        return { letterId, isRestored: false, why: 'taken' }
      }
      this.#archive = this.#archive.filter((each) => each !== found)
      this.#items.push(withBytes(restoreLetter(item, command.now, this.#queue(item.queue).redrive), item))
      this.#totalsAt(item).archived--
      return { letterId, isRestored: true, why: null }
    })
    expect(result).toEqual(expected)
  }

  postpone(command: PostponeRedrives, result: PostponeResult): void {
    const changed = [...new Set(command.letterIds)].flatMap((letterId) => {
      const letter = this.#letter(letterId)
      if (letter === undefined) return []
      const { redrive } = this.#queue(letter.queue)
      const after = postponeRedrive(letter, redrive, command.until, command.now)
      if (after === undefined) return []
      this.#replace(letter, after)
      return [after]
    })
    const exhausted = changed.filter(({ state }) => state === 'dead').length
    expect(result).toEqual({ postponed: changed.length - exhausted, exhausted })
  }

  /**
   * The store chooses how far a replan goes and records it with the queue; all letters up to there are
   * planned.
   */
  replan(command: ReplanRedrives, result: ReplanResult, stored: Queue): void {
    const { replannedUntil: after, ...queue } = this.#queue(command.queue)
    const { replannedUntil: until, ...rest } = stored
    expect(rest).toEqual(queue)
    expect(until !== undefined, 'there is more to tell').toBe(result.isMore)
    const passed = this.items(command.queue)
      .filter((item) => isLetter(item) && (item.state === 'waiting' || item.state === 'leased'))
      .filter((item) => after !== undefined && (after === null || isBehind(item, after)))
      .filter((item) => !until || !isBehind(item, until))
    expect(passed.length).toBeLessThanOrEqual(command.countMax)
    if (result.isMore) expect(passed).not.toEqual([])
    const changed = passed.flatMap((item) => {
      const changedItem = replanRedrive(item, queue.redrive, command.now, noChance)
      if (changedItem !== undefined) this.#replace(item, changedItem)
      return changedItem ?? []
    })
    expect(result.changed).toBe(changed.length)
    this.queues.set(queue.name, stored)
  }

  /** The store chooses among letters that ended at the same instant; `left` has those that stayed. */
  archiveUp(command: Archive, result: Results['archive'], left: readonly Item[]): void {
    const { states = ['done', 'dead', 'discarded'] } = command
    const { letterClass } = this.#queue(command.queue)
    const leaving: readonly string[] = states === 'by-class' ? archivedStates(letterClass) : states
    const ended = this.items(command.queue)
      .flatMap((item) => ('endedAt' in item ? [item] : []))
      .filter((item) => leaving.includes(item.state))
      .filter((item) => item.endedAt < command.endedBefore)
    const isMore = ended.length >= command.countMax
    expect(result).toEqual({ archived: isMore ? command.countMax : ended.length, isMore })
    const stayed = ended.filter((item) => left.some(isAt(item, item.id)))
    const taken = ended.filter((item) => !stayed.includes(item))
    expect(taken).toHaveLength(result.archived)
    for (const item of taken) {
      expect(stayed.filter((other) => other.endedAt < item.endedAt)).toEqual([])
      this.#remove(item, 'archived')
      this.#archive.push({ item, archivedAt: command.now })
    }
  }

  purge(command: PurgeArchive, result: Results['purge-archive']): void {
    const due = this.archive(command.queue)
      .filter(({ archivedAt }) => archivedAt < command.archivedBefore)
      .toSorted((a, b) => a.archivedAt - b.archivedAt)
      .slice(0, command.countMax)
    expect(result).toEqual({ purged: due.length, isMore: due.length === command.countMax })
    this.#archive = this.#archive.filter((each) => !due.includes(each))
    for (const { item } of due) {
      this.#totalsAt(item).archived--
      this.#totalsAt(item).purged++
    }
  }

  #settle(
    command: Complete | Retry,
    ids: readonly string[],
    result: SettleResult,
    fateOf: (item: Leased) => Transition,
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

  #refusals(at: Place, ids: readonly string[]): SettleRefusal[] {
    return ids.flatMap((id, index): SettleRefusal[] => {
      const item = this.#find(at, id)
      const isSettleable = item !== undefined && ['waiting', 'leased'].includes(toGauge(item))
      if (!isSettleable || isRedriving(item) || ids.indexOf(id) < index) return [{ id, why: 'missing' }]
      return item.state === 'leased' ? [] : [{ id, why: 'not-leased' }]
    })
  }

  /** Applies the transition to the item and compares the result with the change that the store reported. */
  #apply(item: Item, fate: Transition, now: Instant, said: ItemChange): void {
    const { queue, partition } = item
    const from = { fromId: item.id, fromQueue: queue, fromPartition: partition, cause: fate.cause }
    const here = { ...from, queue, partition, id: item.id as string | null }
    switch (fate.to) {
      case 'waiting': {
        // A scheduled item may keep its id until it goes to the tail.
        const isKept = said.id === item.id && fate.availableAt !== null
        const id = isKept ? item.id : this.#newId(item, said.id)
        this.#replace(item, { ...applyTransition(item, fate, this.#queue(queue), now, () => id), id })
        const to = fate.availableAt === null ? 'waiting' : 'scheduled'
        expect({ ...said, failure: null }).toEqual({ ...here, to, id, failure: null })
        return
      }
      case 'done':
        this.#replace(item, applyTransition(item, fate, this.#queue(queue), now, noId))
        expect(said).toEqual({ ...here, to: 'done', failure: null, outcome: this.#resolveBy(item, now) })
        return
      case 'dead':
        this.#replace(item, applyTransition(item, fate, this.#queue(queue), now, noId))
        expect(said).toEqual({ ...here, to: 'dead', failure: fate.failure })
        return
      case 'return': {
        const letter = this.#letterUnderWay(item)
        if (letter === undefined) {
          this.#apply(item, killWithoutLetter(item, fate.failure, this.#queue(queue), fate.cause), now, said)
          return
        }
        this.#remove(item, 'deadLettered')
        this.#endRedriveBy(item, 'failed', now, fate.failure, fate.earlier)
        const there = { queue: letter.queue, partition: letter.partition, id: letter.id, to: 'returned' }
        expect(said).toEqual({ ...from, ...there, failure: fate.failure, outcome: 'failed' })
        return
      }
      case 'end-redrive':
        throw new Error('redrives to queues have no deadline')
      case 'move': {
        const target = this.#queue(fate.deadQueue)
        this.#remove(item, 'deadLettered')
        let letter = this.#bySource(target.name, item.id)
        if (letter === undefined) {
          const at = { queue: target.name, partition: mapPartition(partition, target) }
          const id = this.#newId(at, said.id)
          const place = { queue: target, partition: at.partition, id, chance: noChance }
          letter = withBytes(createDeadLetter(item, fate.failure, place, now), item)
          this.#add(letter)
        }
        const { id, rootId } = letter
        const there = { queue: letter.queue, partition: letter.partition, to: 'moved' }
        expect({ ...said, id }).toEqual({ ...from, ...there, id, failure: fate.failure })
        // An existing letter may go to the tail later in the same command: its old and its new id are both
        // right.
        this.#afterwards.push(() => {
          const now = this.#items.find((each) => each.queue === letter.queue && each.rootId === rootId)
          expect([id, now?.id]).toContain(said.id)
        })
        return
      }
      case 'remove':
        this.#remove(item, fate.as)
        expect(said).toEqual({
          ...here,
          to: 'removed',
          id: null,
          failure: fate.failure,
          outcome: fate.as === 'completed' ? this.#resolveBy(item, now) : undefined,
        })
    }
  }

  #whyNotThere(letterId: string): 'missing' | 'archived' {
    const isArchived = this.#archive.some(({ item }) => isLetter(item) && item.rootId === letterId)
    return isArchived ? 'archived' : 'missing'
  }

  /** All refusals that could apply: the store chooses which one it reports. */
  #whyNotSent(letter: Item, asked: string | null, command: RedriveLetters): RedriveRefusal[] {
    const why: RedriveRefusal[] = []
    const notNow = findRedriveRefusal(letter, command, this.#queue(letter.queue).redrive)
    if (notNow !== undefined) why.push(notNow)
    const { redrive } = this.#queue(letter.queue)
    if (command.isDueOnly === true && !isDue(letter, redrive, command.now)) why.push('not-due')
    const name = asked ?? queueOfOrigin(letter.origin)
    if (name === null || !this.queues.has(name)) why.push('no-target')
    const isDeadQueue = [...this.queues.values()].some(
      ({ deadQueue }) => deadQueue !== null && deadQueue === name,
    )
    if (isDeadQueue || (name !== null && this.#withLetters.has(name))) why.push('dead-target')
    return why
  }

  hasOrHadLetters(queue: string): boolean {
    return this.#withLetters.has(queue)
  }

  #letter(rootId: string): Item | undefined {
    return this.#items.find((item) => isLetter(item) && item.rootId === rootId)
  }

  /** The letter that has this item as its current redrive. */
  #letterUnderWay(item: Item): Leased | undefined {
    const letter = item.letterId === null ? undefined : this.#letter(item.letterId)
    if (letter?.state !== 'leased' || !isRedriving(letter)) return undefined
    return letter.letter?.redrives[0]?.number === item.redrives ? letter : undefined
  }

  /** The outcome, if a letter waits for it. */
  #resolveBy(item: Item, now: Instant): Outcome | undefined {
    const isAwaited = this.#letterUnderWay(item) !== undefined
    this.#endRedriveBy(item, 'resolved', now)
    return isAwaited ? 'resolved' : undefined
  }

  #endRedriveBy(
    item: Item,
    outcome: Outcome,
    at: Instant,
    failure = item.failure,
    earlier: readonly Failure[] = [],
  ): void {
    const letter = this.#letterUnderWay(item)
    if (letter === undefined) return
    const end = { outcome, failure: outcome === 'resolved' ? null : failure, earlier, at, chance: noChance }
    this.#replace(letter, endRedrive(letter, end, this.#queue(letter.queue).redrive))
  }

  #takeAway(gone: readonly Item[], endedAt: EndedAt): void {
    for (const item of gone) this.#remove(item, 'deleted')
    for (const item of gone) {
      const letter = this.#letterUnderWay(item)
      if (letter === undefined || (item.state !== 'waiting' && item.state !== 'leased')) continue
      const at = endedAt(letter.rootId)
      this.#endRedriveBy(item, 'unknown', at, createUnknownOutcome(letter, at))
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
    if (isLetter(item)) this.#withLetters.add(item.queue)
    this.#totalsAt(item).accepted++
  }

  #replace(before: Readonly<Place & { id: string }>, after: ItemHead): void {
    this.#items = this.#items.map((item) => (isAt(before, before.id)(item) ? withBytes(after, item) : item))
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

/** In the order of death. */
function isBehind(item: Item, { value, id }: LetterCursor): boolean {
  const diedAt = item.diedAt ?? 0
  return diedAt > value || (diedAt === value && item.id > id)
}

type At = Readonly<Place & { now: Instant }>

function newItem(spec: NewItem | ItemToImport, at: At, id: string, queue: Queue): Waiting {
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

function leaseOf(item: Waiting, holder: string, deadline: Instant): Leased {
  return withBytes({ ...baseOf(item), state: 'leased', lease: { holder, deadline } }, item)
}

function noId(): string {
  throw new Error('only what waits gets a new id')
}

/** The store chooses group ids; expect-consistent-letters.ts checks them. */
export function withoutGroup<I extends Item>(item: I): I {
  return { ...item, groupId: null }
}

function isAt(at: Place, id?: string): (item: Item) => boolean {
  return (item) =>
    item.queue === at.queue && item.partition === at.partition && (id === undefined || item.id === id)
}

function byId(a: Item, b: Item): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0
}

function expectRefused(result: SettleResult, refused: readonly SettleRefusal[]): void {
  const inOrder = (all: readonly SettleRefusal[]): string[] =>
    all.map(({ id, why }) => `${id} ${why}`).toSorted()
  expect(result.isSettled).toBe(false)
  expect(result.isSettled ? [] : inOrder(result.refused)).toEqual(inOrder(refused))
}

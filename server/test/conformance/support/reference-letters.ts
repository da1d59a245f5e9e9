/** The commands on dead letters and on the archive in the reference model. */
import { expect } from 'vitest'
import {
  cancelRedrive,
  discardLetter,
  findSourceQueue,
  isDue,
  isRedriving,
  noDeadline,
  postponeRedrive,
  replanRedrive,
  restoreLetter,
  startRedrive,
} from '../../../src/core/dead-letters/letter.ts'
import { listArchivedStates } from '../../../src/core/dead-letters/letter-class.ts'
import { findDiscardRefusal, findRedriveRefusal } from '../../../src/core/dead-letters/letter-decisions.ts'
import { type Item, isLetter, withBytes } from '../../../src/core/items/item.ts'
import type { Queue } from '../../../src/core/items/queue.ts'
import type { Archive } from '../../../src/storage/contract/archive.ts'
import type {
  CancelRedriveResult,
  CancelRedrives,
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
import { isAt, newItem, noChance, type ReferenceRows } from './reference-rows.ts'

export class ReferenceLetters {
  readonly #rows: ReferenceRows

  constructor(rows: ReferenceRows) {
    this.#rows = rows
  }

  redrive(command: RedriveLetters, result: readonly RedriveResult[]): void {
    const { actor, now } = command
    expect(result.map(({ letterId }) => letterId)).toEqual(command.letters.map(({ letterId }) => letterId))
    for (const [index, asked] of command.letters.entries()) {
      const letter = this.#rows.findLetter(asked.letterId)
      const reported = result[index]
      const refusal =
        letter === undefined
          ? [this.#locateMissing(asked.letterId)]
          : this.#listRefusals(letter, asked.queue, command)
      if (letter === undefined || refusal.length > 0) {
        expect(refusal).toContain(reported?.isStarted === false ? reported.refusal : reported)
        continue
      }
      if (reported?.isStarted !== true)
        throw new Error(`${asked.letterId} was to be sent: ${JSON.stringify(reported)}`)
      const name = asked.queue ?? letter.origin?.name ?? ''
      const number = (letter.letter?.redrives[0]?.number ?? 0) + 1
      expect(reported).toMatchObject({ queue: name, number })
      const queue = this.#rows.queue(name)
      const at = { queue: name, partition: reported.partition, now }
      expect(reported.partition).toBeLessThan(queue.partitions)
      const { kind, encoding, reference, key, headers, priority, payload } = letter
      const same = { kind, encoding, reference, key, headers, priority, payload }
      const id = this.#rows.takeNewId(at, reported.id)
      this.#rows.add(newItem({ ...same, letterId: letter.rootId, retryCount: number }, at, id, queue))
      const target = { kind: 'queue', name, partition: reported.partition, id } as const
      const { campaign = null } = asked
      const { edit = null } = reported
      this.#rows.replace(
        letter,
        startRedrive(letter, { at: now, deadline: noDeadline, actor, campaign, target, edit }),
      )
    }
  }

  discard(command: DiscardLetters, result: readonly DiscardResult[]): void {
    const expected = command.letters.map(({ letterId, campaign }): DiscardResult => {
      const letter = this.#rows.findLetter(letterId)
      const refusal =
        letter === undefined ? this.#locateMissing(letterId) : (findDiscardRefusal(letter) ?? null)
      if (letter !== undefined && refusal === null) {
        this.#rows.replace(letter, discardLetter(letter, command.reason, command.now, campaign?.id))
      }
      return { letterId, isDiscarded: refusal === null, refusal }
    })
    expect(result).toEqual(expected)
  }

  restore(command: RestoreLetters, result: readonly RestoreResult[]): void {
    const expected = command.letterIds.map((letterId): RestoreResult => {
      const live = this.#rows.findLetter(letterId)
      if (live !== undefined) {
        if (live.state !== 'discarded') return { letterId, isRestored: false, refusal: 'not-discarded' }
        this.#rows.replace(live, restoreLetter(live, command.now, this.#rows.queue(live.queue).redrive))
        return { letterId, isRestored: true, refusal: null }
      }
      const found = this.#rows.findArchived(letterId)
      if (found === undefined) return { letterId, isRestored: false, refusal: 'missing' }
      const { item } = found
      if (item.sourceId !== null && this.#rows.findBySource(item.queue, item.sourceId) !== undefined) {
        return { letterId, isRestored: false, refusal: 'taken' }
      }
      this.#rows.removeArchived(found)
      this.#rows.addRestored(
        withBytes(restoreLetter(item, command.now, this.#rows.queue(item.queue).redrive), item),
      )
      return { letterId, isRestored: true, refusal: null }
    })
    expect(result).toEqual(expected)
  }

  cancel(command: CancelRedrives, result: readonly CancelRedriveResult[]): void {
    const expected = command.letterIds.map((letterId): CancelRedriveResult => {
      const letter = this.#rows.findLetter(letterId)
      const refuse = (refusal: CancelRedriveResult['refusal']): CancelRedriveResult => {
        return { letterId, isCancelled: false, refusal, target: null }
      }
      if (letter === undefined) return refuse(this.#locateMissing(letterId))
      if (letter.state !== 'leased' || !isRedriving(letter)) return refuse('not-redriving')
      const record = letter.letter?.redrives[0]
      const target = record?.target.name ?? ''
      const item = this.#rows
        .items(target)
        .find((each) => each.letterId === letterId && each.retryCount === record?.number)
      if (item?.state !== 'waiting' || item.attempts > 0 || item.id !== record?.target.id)
        return refuse('leased')
      this.#rows.remove(item, 'deleted')
      this.#rows.replace(letter, cancelRedrive(letter, command.now, this.#rows.queue(letter.queue).redrive))
      return { letterId, isCancelled: true, refusal: null, target }
    })
    expect(result).toEqual(expected)
  }

  postpone(command: PostponeRedrives, result: PostponeResult): void {
    const changed = [...new Set(command.letterIds)].flatMap((letterId) => {
      const letter = this.#rows.findLetter(letterId)
      if (letter === undefined) return []
      const { redrive } = this.#rows.queue(letter.queue)
      const after = postponeRedrive(letter, redrive, command.until, command.now)
      if (after === undefined) return []
      this.#rows.replace(letter, after)
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
    const { replannedUntil: after, ...queue } = this.#rows.queue(command.queue)
    const { replannedUntil: until, ...rest } = stored
    expect(rest).toEqual(queue)
    expect(until !== undefined, 'there is more to tell').toBe(result.isMore)
    const passed = this.#rows
      .items(command.queue)
      .filter((item) => isLetter(item) && (item.state === 'waiting' || item.state === 'leased'))
      .filter((item) => after !== undefined && (after === null || isBehind(item, after)))
      .filter((item) => !until || !isBehind(item, until))
    expect(passed.length).toBeLessThanOrEqual(command.countMax)
    if (result.isMore) expect(passed).not.toEqual([])
    const changed = passed.flatMap((item) => {
      const changedItem = replanRedrive(item, queue.redrive, command.now, noChance)
      if (changedItem !== undefined) this.#rows.replace(item, changedItem)
      return changedItem ?? []
    })
    expect(result.changed).toBe(changed.length)
    this.#rows.queues.set(queue.name, stored)
  }

  /** The store chooses among letters that ended at the same instant; `left` has those that stayed. */
  archive(command: Archive, result: Results['archive'], left: readonly Item[]): void {
    const { states = ['done', 'dead', 'discarded'] } = command
    const { letterClass } = this.#rows.queue(command.queue)
    const leaving: readonly string[] = states === 'by-class' ? listArchivedStates(letterClass) : states
    const ended = this.#rows
      .items(command.queue)
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
      this.#rows.archiveItem(item, command.now)
    }
  }

  purge(command: PurgeArchive, result: Results['purge-archive']): void {
    const due = this.#rows
      .archive(command.queue)
      .filter(({ archivedAt }) => archivedAt < command.archivedBefore)
      .toSorted((a, b) => a.archivedAt - b.archivedAt)
      .slice(0, command.countMax)
    expect(result).toEqual({ purged: due.length, isMore: due.length === command.countMax })
    for (const archived of due) {
      this.#rows.removeArchived(archived)
      this.#rows.totalsAt(archived.item).purged++
    }
  }

  #locateMissing(letterId: string): 'missing' | 'archived' {
    return this.#rows.findArchived(letterId) === undefined ? 'missing' : 'archived'
  }

  /** All refusals that could apply: the store chooses which one it reports. */
  #listRefusals(letter: Item, asked: string | null, command: RedriveLetters): RedriveRefusal[] {
    const refusals: RedriveRefusal[] = []
    const refusal = findRedriveRefusal(letter, command, this.#rows.queue(letter.queue).redrive)
    if (refusal !== undefined) refusals.push(refusal)
    const { redrive } = this.#rows.queue(letter.queue)
    if (command.isDueOnly === true && !isDue(letter, redrive, command.now)) refusals.push('not-due')
    const name = asked ?? findSourceQueue(letter.origin)
    if (name === null || !this.#rows.queues.has(name)) refusals.push('no-target')
    const isDeadQueue = [...this.#rows.queues.values()].some(
      ({ deadQueue }) => deadQueue !== null && deadQueue === name,
    )
    if (isDeadQueue || (name !== null && this.#rows.hasOrHadLetters(name))) refusals.push('dead-target')
    return refusals
  }
}

/** In the order of death. */
function isBehind(item: Item, { value, id }: LetterCursor): boolean {
  const deadLetteredAt = item.deadLetteredAt ?? 0
  return deadLetteredAt > value || (deadLetteredAt === value && item.id > id)
}

/** Short functions for actions on dead letters in tests. The default time is noon. */
import { expect } from 'vitest'
import type { Item, Leased, LetterFacts, RedriveRecord } from '../../../src/core/items/item.ts'
import type { NewQueue } from '../../../src/core/items/queue.ts'
import type { RetryRequest } from '../../../src/core/items/transitions.ts'
import type { Instant } from '../../../src/core/time/instant.ts'
import type { ItemToImport, NewItem, SettleResult } from '../../../src/storage/contract/items.ts'
import type { DiscardResult, RedriveLetters, RedriveResult } from '../../../src/storage/contract/letters.ts'
import { aFailure, anOrigin, bytes, hour, newItems, noon } from '../../make.ts'
import type { StoreFixture } from './test-stores.ts'

export type Started = Extract<RedriveResult, { isStarted: true }>
type ItemRef = Pick<Item, 'id' | 'queue' | 'partition'>

export const refused = {
  errorCode: 'http_503',
  errorClass: 'Refused',
  message: 'HTTP 503: upstream',
  stack: '',
}

export const inAnHour = { kind: 'fixed', delayUs: hour, jitter: 0 } as const
/** A redrive policy. */
export const automatic = { mode: 'auto', redrivesMax: 3, backoff: inAnHour } as const

export function aLetter(changes: Partial<ItemToImport> = {}): ItemToImport {
  return { payload: bytes('a letter'), origin: anOrigin(), failure: aFailure(), ...changes }
}

export interface LetterActions {
  /** Creates a queue and its dead queue. */
  createQueues(
    work?: Partial<NewQueue>,
    letters?: Partial<NewQueue>,
  ): Promise<{ work: string; letters: string }>
  /** Imports letters that died elsewhere. Returns their root ids. */
  capture(queue: string, letters: readonly ItemToImport[], now?: Instant): Promise<string[]>
  /** Produces items that die immediately. Returns the root ids of their letters. */
  produceDead(
    queue: string,
    items: readonly NewItem[],
    error?: RetryRequest['error'],
    now?: Instant,
    partition?: number,
  ): Promise<string[]>
  redrive(letterIds: readonly string[], how?: Partial<RedriveLetters>): Promise<readonly RedriveResult[]>
  /** Redrives a letter to its origin or to `queue`. Throws if that is refused. */
  redriveOne(letterId: string, now?: Instant, queue?: string | null): Promise<Started>
  discard(letterIds: readonly string[], now?: Instant): Promise<readonly DiscardResult[]>
  /** Leases one item. Throws if there is none. */
  leaseOne(at: Omit<ItemRef, 'id'>, now?: Instant): Promise<Leased>
  complete(item: ItemRef, now?: Instant): Promise<SettleResult>
  declareDead(item: ItemRef, error?: RetryRequest['error'], now?: Instant): Promise<SettleResult>
  retryLater(item: ItemRef, now?: Instant): Promise<SettleResult>
  /** Throws if the letter does not exist. */
  readLetter(letterId: string): Promise<Item & { letter: LetterFacts }>
  readNewestRedrive(letterId: string): Promise<RedriveRecord>
  /** Creates queues, kills an item of `work`, and redrives its letter. */
  redriveNewLetter(
    work?: Partial<NewQueue>,
    letters?: Partial<NewQueue>,
    now?: Instant,
  ): Promise<{ work: string; letters: string; letterId: string; sent: Started }>
  listItems(queue: string): Promise<readonly Item[]>
  /** Deletes a dead queue with its letters and creates it again: nothing else removes open letters. */
  eraseLetters(queues: Readonly<{ work: string; letters: string }>): Promise<void>
}

export function createLetterActions(given: StoreFixture): LetterActions {
  const settle = async (item: ItemRef, isDead: boolean, error: RetryRequest['error'], now: Instant) => {
    const items = [{ id: item.id, availableAt: null, isDead, error }]
    const { queue, partition } = item
    return given.run({ op: 'retry', queue, partition, items, now })
  }
  const actions: LetterActions = {
    createQueues: async (work = {}, letters = {}) => {
      const deadQueue = await given.queue(letters)
      return { letters: deadQueue, work: await given.queue({ deadQueue, ...work }) }
    },
    capture: async (queue, items, now = noon) => {
      const imported = await given.run({ op: 'import', queue, partition: 0, items, now })
      return imported.map(({ id }) => id ?? 'exists already')
    },
    produceDead: async (queue, items, error = refused, now = noon, partition = 0) => {
      const leased = items.map((item) => ({ ...item, lease: { holder: 'worker-1' } }))
      const { ids } = await given.run({ op: 'produce', queue, partition, items: leased, now })
      const dead = ids.map((id) => ({ id, availableAt: null, isDead: true, error }))
      const settled = await given.run({ op: 'retry', queue, partition, items: dead, now })
      if (!settled.isSettled) throw new Error('the leased items could not be settled')
      return settled.changes.map(({ id }) => id ?? '')
    },
    redrive: async (letterIds, how = {}) => {
      const letters = letterIds.map((letterId) => ({ letterId, queue: null }))
      const rules = { isDeadAllowed: false, isCapped: true, actor: 'ann', now: noon }
      return given.run({ op: 'redrive', letters, ...rules, ...how })
    },
    redriveOne: async (letterId, now = noon, queue = null) => {
      const [sent] = await actions.redrive([], { letters: [{ letterId, queue }], now })
      if (sent?.isStarted !== true)
        throw new Error(`letter ${letterId} was not redriven: ${JSON.stringify(sent)}`)
      return sent
    },
    discard: async (letterIds, now = noon) => {
      const letters = letterIds.map((letterId) => ({ letterId }))
      return given.run({ op: 'discard', letters, reason: 'obsolete', now })
    },
    leaseOne: async ({ queue, partition }, now = noon) => {
      const [item] = await given.run({ op: 'lease', queue, partition, holders: ['worker-2'], now })
      if (item === undefined) throw new Error(`no item to lease in ${queue}/${partition}`)
      return item
    },
    complete: async ({ queue, partition, id }, now = noon) =>
      given.run({ op: 'complete', queue, partition, ids: [id], now }),
    declareDead: async (item, error = refused, now = noon) => settle(item, true, error, now),
    retryLater: async (item, now = noon) => settle(item, false, null, now),
    readLetter: async (letterId) => {
      const [found, ...others] = await given.storage.getLetters([letterId])
      expect(others).toEqual([])
      if (found === undefined || found.letter === null) throw new Error(`there is no letter ${letterId}`)
      return { ...found, letter: found.letter }
    },
    readNewestRedrive: async (letterId) => {
      const [record] = (await actions.readLetter(letterId)).letter.redrives
      if (record === undefined) throw new Error(`letter ${letterId} was never redriven`)
      return record
    },
    redriveNewLetter: async (work = {}, letters = {}, now = noon) => {
      const queues = await actions.createQueues(work, letters)
      const [letterId = ''] = await actions.produceDead(queues.work, newItems(1))
      return { ...queues, letterId, sent: await actions.redriveOne(letterId, now) }
    },
    eraseLetters: async ({ work, letters }) => {
      const change = { op: 'update-queue', name: work, now: noon } as const
      await given.storage.write([
        { ...change, changes: { deadQueue: null } },
        { op: 'delete-queue', name: letters, isForced: true },
        { op: 'create-queue', queue: { name: letters }, now: noon },
        { ...change, changes: { deadQueue: letters } },
      ])
    },
    listItems: async (queue) => given.storage.listItems({ queue, countMax: 1_000 }),
  }
  return actions
}

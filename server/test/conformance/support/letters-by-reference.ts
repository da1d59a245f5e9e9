/** Letters that tests identify by their reference. */

import { expect } from 'vitest'
import type { ItemToImport, ListedState } from '../../../src/storage/contract/items.ts'
import type { LetterFilter } from '../../../src/storage/contract/letters.ts'
import { hour, noon } from '../../make.ts'
import { aLetter, createLetterActions } from './letter-actions.ts'
import { type LettersPage, type LettersQuery, listLetters } from './list-letters.ts'
import type { StoreFixture } from './test-stores.ts'

export const wholeQuery: LettersQuery = {
  filter: {},
  order: 'deadLetteredAt',
  isDescending: false,
  countMax: 1_000,
  examinedMax: 10_000,
  bytes: 'all',
}

export interface LettersByReference {
  list(query: Partial<LettersQuery>): Promise<LettersPage>
  /** The references of the letters that a filter finds, sorted. */
  findReferences(filter: LetterFilter): Promise<string[]>
  /** Captures one letter for each reference, with the given fields. */
  captureByReference(
    queue: string,
    letters: Readonly<Record<string, Partial<ItemToImport>>>,
  ): Promise<string[]>
}

export function lettersByReference(given: StoreFixture): LettersByReference {
  const list: LettersByReference['list'] = async (query) =>
    listLetters(given.storage, { ...wholeQuery, ...query })
  return {
    list,
    findReferences: async (filter) => {
      const page = await list({ filter })
      expect(page.next).toBeNull()
      return page.letters.map(({ reference }) => reference).toSorted()
    },
    captureByReference: async (queue, letters) =>
      createLetterActions(given).capture(
        queue,
        Object.entries(letters).map(([reference, changes]) => aLetter({ reference, ...changes })),
      ),
  }
}

/**
 * Captures one letter in each state, with the state as its reference. Two letters are leased: one by a
 * consumer, one by a redrive.
 */
export async function captureOneOfEachState(given: StoreFixture) {
  const actions = createLetterActions(given)
  const held = await given.queue()
  const queue = await given.queue({ attemptsMax: 1 })
  const target = await given.queue()
  const named = (reference: string, changes: Partial<ItemToImport> = {}) => aLetter({ reference, ...changes })
  await actions.capture(held, [named('leased')])
  await actions.leaseOne({ queue: held, partition: 0 })
  await actions.capture(queue, [named('done')])
  await actions.complete(await actions.leaseOne({ queue, partition: 0 }))
  await actions.capture(queue, [named('dead')])
  await actions.declareDead(await actions.leaseOne({ queue, partition: 0 }))
  const [redriving = '', discarded = ''] = await actions.capture(queue, [
    named('redriving'),
    named('discarded'),
    named('waiting'),
    named('scheduled', { availableAt: noon + hour }),
  ])
  await actions.redriveOne(redriving, noon, target)
  await actions.discard([discarded])
  const states: Record<ListedState, string[]> = {
    waiting: ['waiting'],
    scheduled: ['scheduled'],
    leased: ['leased', 'redriving'],
    done: ['done'],
    dead: ['dead'],
    discarded: ['discarded'],
  }
  return { names: Object.values(states).flat().toSorted(), states }
}

/** Letters that have names, and lists of them. */
import { expect } from 'vitest'
import type { ItemToImport, ListedState } from '../../src/storage/contract/items.ts'
import type { LetterFilter, LettersPage, LettersQuery } from '../../src/storage/contract/letters.ts'
import { hour, noon } from '../make.ts'
import { aLetter, letterActs } from './letter-acts.ts'
import type { Given } from './stores.ts'

export const whole: LettersQuery = {
  filter: {},
  order: 'diedAt',
  isDescending: false,
  countMax: 1_000,
  lookMax: 10_000,
  bytes: 'all',
}

export interface NamedLetters {
  list(query: Partial<LettersQuery>): Promise<LettersPage>
  /** The names (references) of those that a filter finds, in order. */
  found(filter: LetterFilter): Promise<string[]>
  /** Letters by name, each with what is given. */
  captureNamed(queue: string, letters: Readonly<Record<string, Partial<ItemToImport>>>): Promise<string[]>
}

export function namedLetters(given: Given): NamedLetters {
  const list: NamedLetters['list'] = async (query) => given.storage.listLetters({ ...whole, ...query })
  return {
    list,
    found: async (filter) => {
      const page = await list({ filter })
      expect(page.next).toBeNull()
      return page.letters.map(({ reference }) => reference).toSorted()
    },
    captureNamed: async (queue, letters) =>
      letterActs(given).capture(
        queue,
        Object.entries(letters).map(([reference, changes]) => aLetter({ reference, ...changes })),
      ),
  }
}

/** One letter in each state, named after it; two are leased: by a consumer, and by a redrive. */
export async function oneOfEachState(given: Given) {
  const acts = letterActs(given)
  const held = await given.queue()
  const queue = await given.queue({ attemptsMax: 1 })
  const target = await given.queue()
  const named = (reference: string, changes: Partial<ItemToImport> = {}) => aLetter({ reference, ...changes })
  await acts.capture(held, [named('leased')])
  await acts.take({ queue: held, partition: 0 })
  await acts.capture(queue, [named('done')])
  await acts.complete(await acts.take({ queue, partition: 0 }))
  await acts.capture(queue, [named('dead')])
  await acts.declareDead(await acts.take({ queue, partition: 0 }))
  const [redriving = '', discarded = ''] = await acts.capture(queue, [
    named('redriving'),
    named('discarded'),
    named('waiting'),
    named('scheduled', { availableAt: noon + hour }),
  ])
  await acts.send(redriving, noon, target)
  await acts.discard([discarded])
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

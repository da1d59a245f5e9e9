/**
 * Pages of letters with a filter that matches more groups than the store searches one by one. The position of
 * the letters among the others does not matter.
 */
import { expect, it } from 'vitest'
import type { ItemToImport } from '../../../src/storage/contract/items.ts'
import { aFailure, minute, noon } from '../../make.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { readLetterPages } from '../support/read-letter-pages.ts'
import { describeStores } from '../support/test-stores.ts'

const causes = 70
const letters = 420

type Layout = Readonly<{
  name: string
  isExpired(index: number): boolean
  deadLetteredAt(index: number): number
}>
const layouts: readonly Layout[] = [
  { name: 'spread evenly', isExpired: (at) => at % 4 === 0, deadLetteredAt: (at) => noon + at * minute },
  { name: 'all before the others', isExpired: (at) => at < 140, deadLetteredAt: (at) => noon + at * minute },
  { name: 'all after the others', isExpired: (at) => at >= 280, deadLetteredAt: (at) => noon + at * minute },
  { name: 'all of them', isExpired: () => true, deadLetteredAt: (at) => noon + at * minute },
  {
    name: 'dead at the same time',
    isExpired: (at) => at % 3 === 0,
    deadLetteredAt: (at) => noon + (at % 2) * minute,
  },
  {
    name: 'mostly of one cause',
    isExpired: (at) => at % 2 === 0,
    deadLetteredAt: (at) => noon - at * minute,
  },
]

function letterAt({ name, isExpired, deadLetteredAt }: Layout, at: number): ItemToImport {
  const cause = name === 'mostly of one cause' && at % 10 > 0 ? 0 : at % causes
  const errorCode = isExpired(at) ? 'expired' : 'attempts'
  const word = `${'abcdefghij'[cause % 10]}${'klmnopq'[Math.floor(cause / 10)]}`
  const failure = aFailure({ errorCode, errorClass: `Error_${word}`, message: `the ${word} is lost` })
  return aLetter({ failure, deadLetteredAt: deadLetteredAt(at) })
}

describeStores('letters of many causes', (given) => {
  const actions = createLetterActions(given)

  it.each(layouts)('letters of many causes are paged in order: $name', async (layout) => {
    const queues = [await given.queue(), await given.queue()]
    const expired: Readonly<{ id: string; deadLetteredAt: number }>[] = []
    for (const [number, queue] of queues.entries()) {
      const indexes = Array.from({ length: letters }, (_, at) => at).filter(
        (at) => at % queues.length === number,
      )
      const ids = await actions.capture(
        queue,
        indexes.map((at) => letterAt(layout, at)),
      )
      const captured = indexes.map((at, position) => ({
        at,
        id: ids[position] ?? '',
        deadLetteredAt: layout.deadLetteredAt(at),
      }))
      expired.push(...captured.filter(({ at }) => layout.isExpired(at)))
    }
    const sorted = expired.toSorted(
      (one, two) => one.deadLetteredAt - two.deadLetteredAt || (one.id < two.id ? -1 : 1),
    )
    const expected = sorted.map(({ id }) => id)
    for (const isDescending of [false, true]) {
      for (const countMax of [9, 50]) {
        const pages = await readLetterPages(given, {
          filter: { errorCodes: ['expired'] },
          order: 'deadLetteredAt',
          isDescending,
          countMax,
          examinedMax: 10_000,
          bytes: 'none',
        })
        expect(pages.slice(0, -1).every((page) => page.length === countMax)).toBe(true)
        const ids = pages.flat().map(({ rootId }) => rootId)
        expect(ids).toEqual(isDescending ? expected.toReversed() : expected)
      }
    }
  })
})

import { expect, it } from 'vitest'
import type { LetterCursor, LetterFilter } from '../../../src/storage/contract/letters.ts'
import { aFailure, anOrigin, bytes, hour, newItems, noon } from '../../make.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { findArchivedLetters, listArchivedLetters } from '../support/list-letters.ts'
import { describeStores } from '../support/test-stores.ts'

const day = 24 * hour

describeStores('archived letters', (given) => {
  const actions = createLetterActions(given)
  const archive = (queue: string, now: number) =>
    given.run({ op: 'archive', queue, endedBefore: now, countMax: 100, now })

  /**
   * Twelve letters in two dead queues, of two customers and three causes. Every third is resolved, the others
   * discarded.
   */
  const twelve = async () => {
    const [one, two] = [await actions.createQueues(), await actions.createQueues()]
    const ids: string[] = []
    for (let index = 0; index < 12; index++) {
      const { work, letters } = index % 2 === 0 ? one : two
      const errorCode = ['http_503', 'timeout', 'declined'][Math.floor(index / 4)] ?? ''
      const letter = aLetter({
        sourceId: `source-${index}`,
        key: bytes(index % 4 < 2 ? 'ann' : 'bob'),
        origin: anOrigin({ kind: 'queue', name: work }),
        failure: aFailure({ errorCode, errorClass: `C${errorCode}`, message: `${errorCode}: no ${index}` }),
        deadLetteredAt: noon + index,
      })
      const [id = ''] = await actions.capture(letters, [letter], noon + hour)
      if (index % 3 === 0) {
        const sent = await actions.redriveOne(id, noon + hour)
        await actions.complete(await actions.leaseOne(sent, noon + hour), noon + hour)
      } else await actions.discard([id], noon + hour)
      await archive(letters, noon + day + Math.floor(index / 2))
      ids.push(id)
    }
    return { queues: [one.letters, two.letters], ids }
  }
  const walk = async (filter: LetterFilter, countMax: number, examinedMax: number) => {
    const found: string[] = []
    let examinedCount = 0
    for (let after: LetterCursor | null | undefined; after !== null; ) {
      const page = await findArchivedLetters(given.storage, {
        filter,
        countMax,
        examinedMax,
        ...(after !== undefined && { after }),
      })
      expect(page.examinedCount).toBeLessThanOrEqual(examinedMax)
      expect(page.letters.length).toBeLessThanOrEqual(Math.min(countMax, page.examinedCount))
      examinedCount += page.examinedCount
      found.push(...page.letters.map(({ item }) => item.rootId))
      after = page.next
    }
    return { found, examinedCount }
  }

  it('archived letters are found by their properties with any step size', async () => {
    const { queues, ids } = await twelve()
    const every = await walk({ queues }, 100, 100)
    expect(every.found.toSorted()).toEqual(ids.toSorted())
    const listed = await listArchivedLetters(given.storage, { queues, countMax: 100 })
    expect(every.found).toEqual(listed.map(({ item }) => item.rootId))
    const [group] = listed.flatMap(({ item }) => (item.rootId === ids[5] ? [item.groupId as number] : []))

    const cases: readonly [filter: LetterFilter, isWanted: (index: number) => boolean][] = [
      [{ queues: queues.slice(0, 1) }, (index) => index % 2 === 0],
      [{ queues: [] }, () => false],
      [{ queues, states: ['done'] }, (index) => index % 3 === 0],
      [{ queues, states: ['waiting', 'dead'] }, () => false],
      [{ queues, errorCodes: ['timeout', 'declined'] }, (index) => index >= 4],
      [{ queues, errorClasses: ['Ctimeout'] }, (index) => index >= 4 && index < 8],
      [{ queues, groupIds: [group ?? 0] }, (index) => index === 5 || index === 7],
      [{ queues, key: bytes('ann') }, (index) => index % 4 < 2],
      [{ queues, sourceIds: ['source-3', 'source-8', 'nothing'] }, (index) => index === 3 || index === 8],
      [{ queues, text: 'TIMEOUT' }, (index) => index >= 4 && index < 8],
      [{ queues, died: { from: noon + 2, until: noon + 4 } }, (index) => index >= 2 && index <= 4],
      [
        { queues, archived: { from: noon + day + 1, until: noon + day + 2 } },
        (index) => index >= 2 && index < 6,
      ],
      [{ queues, archived: { until: noon + day } }, (index) => index < 2],
      [
        { queues, key: bytes('bob'), errorCodes: ['declined'], states: ['discarded'] },
        (index) => index >= 10,
      ],
    ]
    for (const [filter, isWanted] of cases) {
      const wanted = every.found.filter((id) => isWanted(ids.indexOf(id)))
      for (const [countMax, examinedMax] of [
        [100, 100],
        [1, 100],
        [2, 3],
        [5, 1],
      ] as const) {
        expect((await walk(filter, countMax, examinedMax)).found, JSON.stringify(filter)).toEqual(wanted)
      }
    }
  })

  it('a search of the archive examines only letters of the requested time range', async () => {
    const { queues } = await twelve()
    const archived = { from: noon + day + 2, until: noon + day + 3 }
    expect((await walk({ queues, archived, errorCodes: ['none'] }, 100, 100)).examinedCount).toBe(4)
  })

  it('a search of the archive returns only letters, not other items of the queue', async () => {
    const { work, letters } = await actions.createQueues({}, { doneRetentionUs: hour })
    const [id = ''] = await actions.produceDead(work, newItems(1))
    await actions.discard([id])
    const { ids } = await given.run({
      op: 'produce',
      queue: letters,
      partition: 0,
      items: newItems(2),
      now: noon,
    })
    await given.run({ op: 'lease', queue: letters, partition: 0, holders: ['w', 'w'], now: noon })
    await given.run({ op: 'complete', queue: letters, partition: 0, ids, now: noon })
    expect(await archive(letters, noon + day)).toEqual({ archived: 3, isMore: false })
    expect((await walk({ queues: [letters] }, 1, 1)).found).toEqual([id])
    expect((await walk({ queues: [letters] }, 100, 100)).found).toEqual([id])
  })
})

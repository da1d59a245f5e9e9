/** Every way in which a redrive ends is recorded in its letter. */
import { describe, expect, it } from 'vitest'
import { redrivesKept } from '../../../src/core/dead-letters/letter.ts'
import type { Failure } from '../../../src/core/items/item.ts'
import { bytes, day, hour, minute, newItems, noon, second } from '../../make.ts'
import { automatic, createLetterActions, inAnHour, refused } from '../support/letter-actions.ts'
import { run } from '../support/store-reads.ts'
import { createTestStore, describeStores } from '../support/test-stores.ts'

const unknownId = '0'.repeat(27)

describeStores('a redrive', (given) => {
  const actions = createLetterActions(given)

  describe('that is processed', () => {
    it('a letter is resolved when its item completes, not before', async () => {
      const { letters, work, letterId, sent } = await actions.redriveNewLetter()
      const item = await actions.leaseOne(sent)
      expect(await actions.readLetter(letterId)).toMatchObject({ state: 'leased' })
      const settled = await actions.complete(item, noon + minute)
      expect(settled).toMatchObject({
        isSettled: true,
        changes: [{ fromId: item.id, to: 'removed', id: null, outcome: 'resolved' }],
      })
      const letter = await actions.readLetter(letterId)
      expect(letter).toMatchObject({
        state: 'done',
        endedAt: noon + minute,
        updatedAt: noon + minute,
        retryCount: 0,
      })
      expect(letter.letter).toMatchObject({ requeueCount: 1, nextRedriveAt: null })
      expect(letter.letter.redrives).toMatchObject([
        { number: 1, outcome: 'resolved', endedAt: noon + minute },
      ])
      expect(letter.failure).toMatchObject(refused)
      expect(await given.storage.readCounts({ queue: letters })).toMatchObject([
        { leased: 0, done: 1, completed: 0 },
      ])
      expect(await given.storage.readCounts({ queue: work })).toMatchObject([
        { accepted: 2, completed: 1, deadLettered: 1 },
      ])
    })

    it('a letter stays resolved when the kept done item is removed', async () => {
      const { work, letterId, sent } = await actions.redriveNewLetter({ doneRetentionUs: minute })
      await actions.complete(await actions.leaseOne(sent), noon + 1)
      expect(await actions.listItems(work)).toMatchObject([{ state: 'done', letterId }])
      const resolved = await actions.readLetter(letterId)
      expect(resolved).toMatchObject({ state: 'done', endedAt: noon + 1 })
      await given.run({ op: 'advance', now: noon + hour, countMax: 10 })
      expect(await actions.listItems(work)).toEqual([])
      expect(await actions.readLetter(letterId)).toEqual(resolved)
    })

    it('redriven items resolve their letters in a batch with ordinary items', async () => {
      const { work } = await actions.createQueues()
      const ids = await actions.produceDead(work, newItems(4))
      await actions.redrive(ids)
      await given.run({ op: 'produce', queue: work, partition: 0, items: newItems(4, 'plain'), now: noon })
      const holders = Array.from({ length: 8 }, () => 'w')
      const leased = await given.run({ op: 'lease', queue: work, partition: 0, holders, now: noon })
      const [a, b, c, d, ...rest] = leased.map(({ id }) => id)
      const command = { op: 'complete', queue: work, partition: 0, now: noon + 1 } as const
      await given.storage.write([
        { ...command, ids: [a ?? '', b ?? '', c ?? ''] },
        { ...command, ids: [d ?? ''] },
        { ...command, ids: rest },
      ])
      const letters = await given.storage.getLetters(ids)
      expect(letters.map(({ state }) => state)).toEqual(['done', 'done', 'done', 'done'])
      expect(await given.storage.readCounts({ queue: work })).toMatchObject([{ completed: 8 }])
    })

    it('a refused complete does not resolve the letter', async () => {
      const { work, letterId, sent } = await actions.redriveNewLetter()
      await actions.leaseOne(sent)
      const ids = [sent.id, unknownId]
      await given.run({ op: 'complete', queue: work, partition: 0, ids, now: noon })
      expect(await actions.readLetter(letterId)).toMatchObject({ state: 'leased' })
    })
  })

  describe('that dies again', () => {
    const other = { errorCode: 'http_410', errorClass: 'Gone', message: 'no such shop', stack: 'at x' }
    const ways = {
      'declared dead': async (queue: string) => {
        await actions.declareDead(await actions.leaseOne({ queue, partition: 0 }), other, noon + minute)
      },
      'given back too often': async (queue: string) => {
        await actions.retryLater(await actions.leaseOne({ queue, partition: 0 }), noon + 1)
        await actions.retryLater(await actions.leaseOne({ queue, partition: 0 }), noon + minute)
      },
      'its lease ended too often': async (queue: string) => {
        await actions.leaseOne({ queue, partition: 0 })
        await given.run({ op: 'advance', now: noon + minute, countMax: 10 })
      },
      'it expired': async () => {
        await given.run({ op: 'advance', now: noon + 2 * hour, countMax: 10 })
      },
    }
    const reasons: Record<keyof typeof ways, string> = {
      'declared dead': 'http_410',
      'given back too often': 'attempts',
      'its lease ended too often': 'attempts',
      'it expired': 'expired',
    }
    for (const [way, kill] of Object.entries(ways)) {
      it(`a redrive that dies again returns to the same letter: ${way}`, async () => {
        const { letters, work, letterId } = await actions.redriveNewLetter({
          attemptsMax: 1,
          leaseTimeoutUs: minute,
          expireTimeoutUs: 2 * hour,
        })
        const before = await actions.readLetter(letterId)
        await kill(work)
        const letter = await actions.readLetter(letterId)
        expect(letter).toMatchObject({
          id: letterId,
          state: 'waiting',
          availableAt: null,
          retryCount: 1,
          deadLetteredAt: before.deadLetteredAt,
          createdAt: before.createdAt,
          attempts: 0,
          failure: { errorCode: reasons[way as keyof typeof ways] },
        })
        // The history has one more failure for each earlier attempt of the redrive.
        const earlier = way === 'given back too often' ? ['retried'] : []
        expect(letter.history.slice(0, -1).map(({ errorCode }) => errorCode)).toEqual(earlier)
        expect(letter.history.at(-1)).toEqual(before.failure)
        expect(letter.updatedAt).toBe(letter.failure?.lastFailedAt)
        expect(letter.letter.redrives).toMatchObject([
          { number: 1, outcome: 'failed', endedAt: letter.updatedAt },
        ])
        expect(letter.letter).toMatchObject({ requeueCount: 1, nextRedriveAt: null })
        expect(await actions.listItems(work)).toEqual([])
        expect(await actions.listItems(letters)).toHaveLength(1)
        expect(await given.storage.readCounts({ queue: letters })).toMatchObject([
          { accepted: 1, waiting: 1, leased: 0 },
        ])
        expect(await given.storage.readCounts({ queue: work })).toMatchObject([
          { accepted: 2, deadLettered: 2, dropped: 0 },
        ])
      })
    }

    it('the change of a redrive that died again names its letter', async () => {
      const { letters, work, letterId, sent } = await actions.redriveNewLetter()
      const item = await actions.leaseOne(sent)
      const settled = await actions.declareDead(item, other, noon + 1)
      expect(settled).toEqual({
        isSettled: true,
        changes: [
          {
            fromId: item.id,
            fromQueue: work,
            fromPartition: 0,
            to: 'returned',
            cause: 'declared-dead',
            id: letterId,
            queue: letters,
            partition: 0,
            outcome: 'failed',
            failure: {
              ...other,
              attempts: 1,
              firstFailedAt: noon + 1,
              lastFailedAt: noon + 1,
              worker: 'worker-2',
            },
          },
        ],
      })
    })

    it('a redrive that dies in another queue returns to its letter', async () => {
      const { work } = await actions.createQueues()
      const plain = await given.queue({ onDead: 'keep' })
      const withDead = (await actions.createQueues()).work
      for (const target of [plain, withDead]) {
        const [letterId = ''] = await actions.produceDead(work, newItems(1))
        const sent = await actions.redriveOne(letterId, noon, target)
        await actions.declareDead(await actions.leaseOne(sent))
        expect(await actions.readLetter(letterId)).toMatchObject({ state: 'waiting', retryCount: 1 })
        expect(await actions.listItems(target)).toEqual([])
      }
    })

    it('a letter changes its group if it fails with another cause', async () => {
      const { work, letters, letterId, sent } = await actions.redriveNewLetter()
      const { groupId } = await actions.readLetter(letterId)
      await actions.declareDead(await actions.leaseOne(sent), { ...refused, message: 'HTTP 503: upstream' })
      expect((await actions.readLetter(letterId)).groupId).toBe(groupId)
      await actions.redriveOne(letterId)
      await actions.declareDead(await actions.leaseOne({ queue: work, partition: 0 }), other)
      const after = await actions.readLetter(letterId)
      expect(after.groupId).not.toBe(groupId)
      expect(after.history.map((failure: Failure) => failure.errorCode)).toEqual(['http_503', 'http_503'])
      const groups = await given.storage.listGroups({
        filter: { queues: [letters] },
        isEmptyToo: true,
        countMax: 10,
      })
      expect(groups.map(({ id, count }) => ({ id, count }))).toEqual([
        { id: after.groupId, count: 1 },
        { id: groupId, count: 0 },
      ])
    })

    it('a letter is DEAD at the cap of its policy and is redriven only by a person', async () => {
      const { work, letters } = await actions.createQueues(
        {},
        { redrive: { mode: 'manual', redrivesMax: 2, backoff: inAnHour } },
      )
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      for (const at of [noon + 1, noon + 2]) {
        const sent = await actions.redriveOne(letterId, at)
        await actions.declareDead(await actions.leaseOne(sent, at), refused, at)
      }
      expect(await actions.readLetter(letterId)).toMatchObject({
        state: 'dead',
        endedAt: noon + 2,
        retryCount: 2,
        deadLetteredAt: noon,
      })
      expect(await given.storage.readCounts({ queue: letters })).toMatchObject([
        { dead: 1, waiting: 0, leased: 0 },
      ])
      const redrive = async (how: object) => (await actions.redrive([letterId], { now: noon + 3, ...how }))[0]
      expect(await redrive({ isDeadAllowed: false, isCapped: false })).toMatchObject({ refusal: 'dead' })
      expect(await redrive({ isDeadAllowed: true, isCapped: true })).toMatchObject({ refusal: 'exhausted' })
      expect(await redrive({ isDeadAllowed: true, isCapped: false })).toMatchObject({
        isStarted: true,
        number: 3,
      })
      await actions.declareDead(await actions.leaseOne({ queue: work, partition: 0 }), refused, noon + 4)
      expect(await actions.readLetter(letterId)).toMatchObject({
        state: 'dead',
        retryCount: 3,
        endedAt: noon + 4,
      })
      await redrive({ isDeadAllowed: true, isCapped: false })
      await actions.complete(await actions.leaseOne({ queue: work, partition: 0 }))
      expect(await actions.readLetter(letterId)).toMatchObject({ state: 'done', retryCount: 3 })
    })

    it('a letter keeps its latest redrives, newest first, and counts all', async () => {
      const redrive = { mode: 'manual', redrivesMax: 1_000, backoff: inAnHour } as const
      const { work } = await actions.createQueues({}, { redrive })
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      const rounds = redrivesKept + 3
      for (let round = 1; round <= rounds; round++) {
        const sent = await actions.redriveOne(letterId, noon + round * second)
        expect(sent.number).toBe(round)
        await actions.declareDead(
          await actions.leaseOne(sent),
          { message: `round ${round}` },
          noon + round * second + 1,
        )
      }
      const letter = await actions.readLetter(letterId)
      expect(letter).toMatchObject({ retryCount: rounds, failure: { message: `round ${rounds}` } })
      expect(letter.letter.requeueCount).toBe(rounds)
      const numbers = Array.from({ length: redrivesKept }, (_, index) => rounds - index)
      expect(letter.letter.redrives.map(({ number }) => number)).toEqual(numbers)
      expect(letter.letter.redrives.at(-1)).toMatchObject({
        outcome: 'failed',
        endedAt: noon + 4 * second + 1,
      })
      expect(letter.history.map(({ message }) => message)).toEqual(
        numbers.map((number) => `round ${number - 1}`),
      )
    })

    it('redriven and ordinary items of one batch die independently', async () => {
      const { work, letters } = await actions.createQueues({ expireTimeoutUs: hour })
      const ids = await actions.produceDead(work, newItems(50))
      await actions.redrive(ids)
      await given.run({ op: 'produce', queue: work, partition: 0, items: newItems(50, 'plain'), now: noon })
      const { changes } = await given.run({ op: 'advance', now: noon + hour, countMax: 1_000 })
      expect(changes.filter(({ to }) => to === 'returned')).toHaveLength(50)
      expect(changes.filter(({ to }) => to === 'moved')).toHaveLength(50)
      const all = await actions.listItems(letters)
      expect(all).toHaveLength(100)
      expect(
        all
          .filter(({ retryCount }) => retryCount === 1)
          .map(({ rootId }) => rootId)
          .toSorted(),
      ).toEqual(ids.toSorted())
    })
  })

  describe('a redrive with an unknown outcome', () => {
    const ways = {
      'its item was deleted': async (work: string, id: string) =>
        given.run({ op: 'delete', queue: work, partition: 0, ids: [id] }),
      'its item was cleared away': async (work: string) =>
        given.run({
          op: 'clear',
          queue: work,
          isWaiting: true,
          isScheduled: true,
          isLeased: true,
          countMax: 10,
        }),
      'its queue was deleted': async (work: string) => given.run({ op: 'delete-queue', name: work }),
    }
    for (const [way, lose] of Object.entries(ways)) {
      for (const isLeased of [false, true]) {
        it(`a redrive has an unknown outcome if ${way} while ${isLeased ? 'leased' : 'waiting'}`, async () => {
          const { work, letters, letterId, sent } = await actions.redriveNewLetter({}, { redrive: automatic })
          if (isLeased) await actions.leaseOne(sent)
          const before = await actions.readLetter(letterId)
          await lose(work, sent.id)
          const letter = await actions.readLetter(letterId)
          expect(letter).toMatchObject({
            id: letterId,
            state: 'waiting',
            retryCount: 1,
            deadLetteredAt: noon,
          })
          const nobody = { errorClass: '', stack: '', worker: '' }
          expect(letter.failure).toMatchObject({ errorCode: 'outcome_unknown', ...nobody })
          expect(letter.history).toEqual([before.failure])
          expect(letter.letter).toMatchObject({ requeueCount: 1, nextRedriveAt: null })
          const [record] = letter.letter.redrives
          expect(record).toMatchObject({ number: 1, outcome: 'unknown' })
          expect(record?.endedAt).toBe(letter.updatedAt)
          expect(letter.updatedAt).toBeGreaterThanOrEqual(noon)
          expect(await given.storage.readCounts({ queue: letters })).toMatchObject([
            { waiting: 1, leased: 0 },
          ])
          if (lose === ways['its queue was deleted']) return
          const [again] = await actions.redrive([letterId], { now: noon + 10_000 * day, isDueOnly: true })
          expect(again).toMatchObject({ isStarted: false, refusal: 'not-due' })
        })
      }
    }

    it('a redrive ends at the time of the store clock if the command has no time', async () => {
      const place = await createTestStore(given.name)
      try {
        const clock = { now: () => noon + 7 }
        const store = await place.open({ clock })
        const theirs = createLetterActions({
          ...given,
          storage: store,
          run: (command) => run(store, command),
        })
        for (const queue of [{ name: 'letters' }, { name: 'work', deadQueue: 'letters' }]) {
          await run(store, { op: 'create-queue', queue, now: noon })
        }
        const [letterId = ''] = await theirs.produceDead('work', newItems(1))
        const sent = await theirs.redriveOne(letterId)
        await run(store, { op: 'delete', queue: 'work', partition: 0, ids: [sent.id] })
        expect(await theirs.readNewestRedrive(letterId)).toMatchObject({
          outcome: 'unknown',
          endedAt: noon + 7,
        })
        expect(await theirs.readLetter(letterId)).toMatchObject({
          updatedAt: noon + 7,
          failure: { lastFailedAt: noon + 7 },
        })
      } finally {
        await place.drop()
      }
    })

    it('an unknown outcome counts towards the cap', async () => {
      const once = { mode: 'manual', redrivesMax: 1, backoff: inAnHour } as const
      const { work, letterId, sent } = await actions.redriveNewLetter({}, { redrive: once })
      await given.run({ op: 'delete', queue: work, partition: 0, ids: [sent.id] })
      expect(await actions.readLetter(letterId)).toMatchObject({ state: 'dead', retryCount: 1 })
    })

    it('deleting a queue ends the redrives of its items as unknown', async () => {
      const { work } = await actions.createQueues({ partitions: 2 })
      const ids = await actions.produceDead(work, newItems(30))
      await actions.redrive(ids)
      await given.run({ op: 'delete-queue', name: work })
      const letters = await given.storage.getLetters(ids)
      expect(new Set(letters.map(({ state, retryCount }) => `${state} ${retryCount}`))).toEqual(
        new Set(['waiting 1']),
      )
    })

    it('deleting a done item keeps its letter resolved', async () => {
      const { work, letterId, sent } = await actions.redriveNewLetter({ doneRetentionUs: day })
      await actions.complete(await actions.leaseOne(sent))
      const resolved = await actions.readLetter(letterId)
      await given.run({ op: 'delete', queue: work, partition: 0, ids: [sent.id] })
      expect(await actions.readLetter(letterId)).toEqual(resolved)
    })
  })

  describe('an item without its letter', () => {
    it('an item whose letter is gone becomes a new letter when it dies', async () => {
      const { work, letters, letterId, sent } = await actions.redriveNewLetter()
      await actions.eraseLetters({ work, letters })
      const item = await actions.leaseOne(sent)
      expect(await actions.declareDead(item)).toMatchObject({ changes: [{ to: 'moved', queue: letters }] })
      const [letter, ...others] = await actions.listItems(letters)
      expect(others).toEqual([])
      expect(letter).toMatchObject({
        sourceId: item.id,
        state: 'waiting',
        retryCount: 0,
        origin: { name: work },
        payload: bytes('item-0'),
        letterId: null,
      })
      expect(letter?.rootId).not.toBe(letterId)
    })

    it('an item whose letter is gone completes or is deleted like any other', async () => {
      const { work, letters } = await actions.createQueues()
      const ids = await actions.produceDead(work, newItems(2))
      await actions.redrive(ids)
      await actions.eraseLetters({ work, letters })
      const item = await actions.leaseOne({ queue: work, partition: 0 })
      expect(await actions.complete(item)).toMatchObject({ isSettled: true, changes: [{ to: 'removed' }] })
      const [rest] = await actions.listItems(work)
      await given.run({ op: 'delete', queue: work, partition: 0, ids: [rest?.id ?? ''] })
      expect(await given.storage.readCounts({ queue: work })).toMatchObject([
        { completed: 1, deleted: 1, waiting: 0 },
      ])
    })

    it('an item ends only its own redrive, not a later one', async () => {
      const { work, letters, letterId, sent } = await actions.redriveNewLetter()
      const ends = [{ letterId, outcome: 'unknown', failure: null }] as const
      expect(await given.run({ op: 'end-redrives', ends, now: noon + 1 })).toEqual([
        { letterId, state: 'waiting' },
      ])
      const second = await actions.redriveOne(letterId, noon + 2)
      expect(second.number).toBe(2)
      const first = await actions.leaseOne(sent)
      expect(first.id).toBe(sent.id)
      await actions.complete(first, noon + 3)
      expect(await actions.readNewestRedrive(letterId)).toMatchObject({ number: 2, outcome: null })
      await actions.complete(await actions.leaseOne(second), noon + 4)
      expect(await actions.readLetter(letterId)).toMatchObject({ state: 'done', endedAt: noon + 4 })

      const [other = ''] = await actions.produceDead(work, newItems(1, 'other'))
      const sentFirst = await actions.redriveOne(other)
      await given.run({
        op: 'end-redrives',
        ends: [{ letterId: other, outcome: 'unknown', failure: null }],
        now: noon,
      })
      await actions.redriveOne(other)
      const late = await actions.leaseOne(sentFirst)
      await actions.declareDead(late, refused, noon + 5)
      expect(await actions.readNewestRedrive(other)).toMatchObject({ number: 2, outcome: null })
      const strangers = (await actions.listItems(letters)).filter(({ sourceId }) => sourceId === late.id)
      expect(strangers).toMatchObject([{ payload: bytes('other-0'), state: 'waiting' }])
    })
  })
})

/** How a dead letter goes back: exactly what is sent, how each end is told, and that there is only one at a time. */
import { describe, expect, it } from 'vitest'
import type { Failure } from '../../src/core/item.ts'
import { redriveHolder, redrivesKept } from '../../src/core/letter.ts'
import type { NotSent } from '../../src/storage/letter-store.ts'
import { aFailure, anOrigin, bytes, day, hour, minute, newItems, noon, second, textOf } from '../make.ts'
import { expectRefusal } from './known-error.ts'
import { aLetter, letterActs, refused } from './letter-acts.ts'
import { run } from './store-facts.ts'
import { createPlace, describeStores } from './stores.ts'

const unknownId = '0'.repeat(27)
const inAnHour = { kind: 'fixed', delayUs: hour, jitter: 0 } as const
const automatic = { mode: 'auto', redrivesMax: 3, backoff: inAnHour } as const

describeStores('a redrive', (given) => {
  const acts = letterActs(given)
  /** One letter of `work`, and what was sent of it. */
  const oneSent = async (work = {}, letters = {}, now = noon) => {
    const queues = await acts.queues(work, letters)
    const [letterId = ''] = await acts.bury(queues.work, newItems(1))
    const sent = await acts.send(letterId, now)
    return { ...queues, letterId, sent }
  }

  describe('sends', () => {
    const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    const whole = {
      payload: everyByte,
      kind: 'order',
      encoding: 'json',
      reference: 'shop/7',
      key: everyByte,
      headers: [['b', everyByte] as const, ['a', null] as const, ['b', bytes('2')] as const],
      priority: 4,
    }

    it('the same bytes and texts to the queue it came from, as a new item that knows its letter', async () => {
      const { work } = await acts.queues({ partitions: 3, expireUs: 5 * hour })
      const [letterId = ''] = await acts.bury(work, [{ ...whole, attemptsMax: 9 }], refused, noon, 2)
      const sent = await acts.send(letterId, noon + minute)
      expect(sent).toEqual({
        letterId,
        isStarted: true,
        queue: work,
        partition: sent.partition,
        id: sent.id,
        number: 1,
      })
      expect(await acts.items(work)).toEqual([
        {
          ...whole,
          id: sent.id,
          rootId: sent.id,
          queue: work,
          partition: sent.partition,
          sourceId: null,
          state: 'waiting',
          availableAt: null,
          attempts: 0,
          attemptsMax: 0,
          createdAt: noon + minute,
          updatedAt: noon + minute,
          expireDeadline: noon + minute + 5 * hour,
          failure: null,
          history: [],
          origin: null,
          diedAt: null,
          letterId,
          redrives: 1,
          groupId: null,
          letter: null,
        },
      ])
      expect(await given.storage.counts({ queue: work })).toMatchObject(
        [0, 1, 2].map((partition) => ({ partition, waiting: partition === sent.partition ? 1 : 0 })),
      )
    })

    it('to a queue that is named instead, whatever the origin is', async () => {
      const letters = await given.queue()
      const other = await given.queue()
      const [letterId = ''] = await acts.capture(letters, [aLetter({ ...whole, sourceId: 'kafka/7' })])
      const sent = await acts.send(letterId, noon, other)
      expect(sent.queue).toBe(other)
      expect(await acts.items(other)).toMatchObject([{ ...whole, letterId, sourceId: null, origin: null }])
      expect((await acts.newest(letterId)).target).toEqual({
        kind: 'queue',
        name: other,
        partition: 0,
        id: sent.id,
      })
    })

    it('what a leaser gets like any other item', async () => {
      const { letterId, sent } = await oneSent()
      expect(await acts.take(sent)).toMatchObject({ id: sent.id, letterId, redrives: 1, attempts: 1 })
    })

    it('an edited version, and keeps the letter as it came', async () => {
      const { work } = await acts.queues()
      const [letterId = ''] = await acts.bury(work, [whole])
      const before = await acts.letter(letterId)
      const edit = { op: 'edit-letter', letterId, actor: 'ann', now: noon } as const
      expect(await given.run({ ...edit, payload: bytes('mended') })).toEqual({ number: 1 })
      expect(
        await given.run({ ...edit, key: null, headers: [['x', bytes('y')]], actor: 'bob', now: noon + 1 }),
      ).toEqual({
        number: 2,
      })
      expect(await acts.letter(letterId)).toMatchObject(whole)
      const { payload, key, headers } = whole
      expect(await given.storage.listEdits(letterId)).toEqual([
        { number: 1, at: noon, actor: 'ann', payload: bytes('mended'), key, headers },
        { number: 2, at: noon + 1, actor: 'bob', payload, key: null, headers: [['x', bytes('y')]] },
      ])

      await acts.redrive([], { letters: [{ letterId, queue: null, edit: 2 }] })
      expect(await acts.items(work)).toMatchObject([
        { ...whole, key: null, headers: [['x', bytes('y')]], letterId },
      ])
      expect(await acts.newest(letterId)).toMatchObject({ edit: 2 })
      await acts.declareDead(await acts.take({ queue: work, partition: 0 }))
      expect(await acts.letter(letterId)).toMatchObject({
        ...whole,
        redrives: 1,
        createdAt: before.createdAt,
      })

      await acts.redrive([], { letters: [{ letterId, queue: null, edit: 1 }] })
      expect(await acts.items(work)).toMatchObject([{ ...whole, payload: bytes('mended') }])
    })

    it('many at once, each by itself: what cannot be sent says why in its place', async () => {
      const { work } = await acts.queues()
      const ids = await acts.bury(work, newItems(300))
      const [first = '', second = ''] = ids
      await acts.discard([first])
      const sent = await acts.redrive([...ids, unknownId, second])
      expect(sent.map(({ letterId }) => letterId)).toEqual([...ids, unknownId, second])
      expect(sent.flatMap((each) => (each.isStarted ? [] : [[each.letterId, each.why]]))).toEqual([
        [first, 'discarded'],
        [unknownId, 'missing'],
        [second, 'redriving'],
      ])
      const items = await acts.items(work)
      expect(items.map(({ letterId }) => letterId).toSorted()).toEqual(ids.slice(1).toSorted())
      for (const item of items) {
        const started = sent.find((each) => each.isStarted && each.id === item.id)
        expect(started?.letterId).toBe(item.letterId)
      }
    })

    it('in the transaction it stands in: all of it or nothing', async () => {
      const { work, letters } = await acts.queues()
      const [letterId = ''] = await acts.bury(work, newItems(1))
      const before = await acts.letter(letterId)
      const rules = { isDeadAllowed: false, isCapped: true, actor: 'ann', now: noon }
      await expectRefusal(
        given.storage.write([
          { op: 'redrive', letters: [{ letterId, queue: null }], ...rules },
          { op: 'produce', queue: 'nowhere', partition: 0, items: newItems(1), now: noon },
        ]),
        'QUEUE_NOT_FOUND',
      )
      expect(await acts.letter(letterId)).toEqual(before)
      expect(await acts.items(work)).toEqual([])
      expect(await given.storage.counts({ queue: letters })).toMatchObject([{ waiting: 1, leased: 0 }])
    })
  })

  describe('under way', () => {
    it('is held by the letter, which tells who sent it, when and where', async () => {
      const { letters, work, letterId, sent } = await oneSent({}, {}, noon + minute)
      expect(await acts.letter(letterId)).toMatchObject({
        id: letterId,
        rootId: letterId,
        queue: letters,
        state: 'leased',
        lease: { holder: redriveHolder },
        attempts: 0,
        redrives: 0,
        updatedAt: noon + minute,
        diedAt: noon,
        letter: {
          requeues: 1,
          lastRedriveAt: noon + minute,
          nextRedriveAt: null,
          redrives: [
            {
              number: 1,
              at: noon + minute,
              actor: 'ann',
              campaign: null,
              target: { kind: 'queue', name: work, partition: sent.partition, id: sent.id },
              edit: null,
              outcome: null,
              endedAt: null,
            },
          ],
        },
      })
      expect(await given.storage.counts({ queue: letters })).toMatchObject([
        { waiting: 0, leased: 1, accepted: 1 },
      ])
    })

    it('cannot be settled by anybody else', async () => {
      const { letters, letterId } = await oneSent()
      const at = { queue: letters, partition: 0, now: noon + 1 }
      const missing = { isSettled: false, refused: [{ id: letterId, why: 'missing' }] }
      const before = await acts.letter(letterId)
      expect(await given.run({ op: 'complete', ids: [letterId], ...at })).toEqual(missing)
      expect(await given.run({ op: 'extend', ids: [letterId], deadline: noon + hour, ...at })).toEqual(
        missing,
      )
      for (const isDead of [false, true]) {
        const items = [{ id: letterId, availableAt: null, isDead, error: null }]
        expect(await given.run({ op: 'retry', items, ...at })).toEqual(missing)
      }
      expect(await given.run({ op: 'unlease', ids: [letterId], ...at })).toEqual({ unleased: 0 })
      expect(await given.run({ op: 'lease', holders: ['w'], ...at })).toEqual([])
      expect(await acts.letter(letterId)).toEqual(before)
    })

    it('refuses the whole settlement that names it beside others', async () => {
      const { letters, work, letterId } = await oneSent()
      const [other = ''] = await acts.bury(work, newItems(1, 'other'))
      await acts.take({ queue: letters, partition: 0 })
      const ids = [other, letterId]
      expect(await given.run({ op: 'complete', queue: letters, partition: 0, ids, now: noon })).toEqual({
        isSettled: false,
        refused: [{ id: letterId, why: 'missing' }],
      })
      expect(await acts.letter(other)).toMatchObject({ state: 'leased' })
    })

    it('does not end by itself while its item lives, however long that takes', async () => {
      const { work, letterId, sent } = await oneSent({ expireUs: 100_000 * day })
      await acts.take(sent)
      const { changes } = await given.run({ op: 'advance', now: noon + 10_000 * day, countMax: 10 })
      expect(changes).toMatchObject([{ fromQueue: work, to: 'waiting', because: 'lease-end' }])
      expect(await acts.newest(letterId)).toMatchObject({ outcome: null })
    })

    it('stays the same redrive through retries, lease ends and schedules of its item', async () => {
      const { letterId, sent } = await oneSent({ attemptsMax: 10, leaseUs: minute })
      await acts.giveBack(await acts.take(sent))
      await acts.take(sent)
      await given.run({ op: 'advance', now: noon + hour, countMax: 10 })
      const item = await acts.take(sent, noon + hour)
      const { queue, partition, id } = item
      const items = [{ id, availableAt: noon + 2 * hour, isDead: false, error: refused }]
      await given.run({ op: 'retry', queue, partition, items, now: noon + hour })
      await given.run({ op: 'advance', now: noon + 2 * hour, countMax: 10 })
      const last = await acts.take(sent, noon + 2 * hour)
      expect(last).toMatchObject({ rootId: sent.id, letterId, redrives: 1, attempts: 4 })
      expect(await acts.letter(letterId)).toMatchObject({ state: 'leased', redrives: 0, history: [] })
      await acts.complete(last, noon + 2 * hour)
      expect(await acts.letter(letterId)).toMatchObject({ state: 'done', endedAt: noon + 2 * hour })
    })

    it('is the only one: a second is told so and changes nothing', async () => {
      const { work, letterId } = await oneSent()
      const before = await acts.letter(letterId)
      const again = { isDeadAllowed: true, isCapped: false, now: noon + 1 }
      expect(await acts.redrive([letterId], again)).toEqual([
        { letterId, isStarted: false, why: 'redriving' },
      ])
      expect(await acts.discard([letterId], noon + 1)).toEqual([
        { letterId, isDiscarded: false, why: 'redriving' },
      ])
      expect(await acts.letter(letterId)).toEqual(before)
      expect(await acts.items(work)).toHaveLength(1)
    })

    it('is the only one of many that begin at the same time', async () => {
      const { work } = await acts.queues({ partitions: 2 })
      const ids = await acts.bury(work, newItems(20))
      const calls = await Promise.all(
        Array.from({ length: 8 }, async (_, index) =>
          acts.redrive(index % 2 === 0 ? ids : ids.toReversed(), { actor: `actor-${index}` }),
        ),
      )
      for (const letterId of ids) {
        const told = calls.map((call) => call.find((each) => each.letterId === letterId))
        expect(told.filter((each) => each?.isStarted)).toHaveLength(1)
        expect(told.flatMap((each) => (each?.isStarted === false ? [each.why] : []))).toEqual(
          Array.from({ length: 7 }, () => 'redriving'),
        )
      }
      expect((await acts.items(work)).map((item) => item.letterId).toSorted()).toEqual(ids.toSorted())
    })
  })

  describe('that is processed', () => {
    it('resolves its letter when the item completed, not before', async () => {
      const { letters, work, letterId, sent } = await oneSent()
      const item = await acts.take(sent)
      expect(await acts.letter(letterId)).toMatchObject({ state: 'leased' })
      const settled = await acts.complete(item, noon + minute)
      expect(settled).toMatchObject({
        isSettled: true,
        changes: [{ fromId: item.id, to: 'removed', id: null, outcome: 'resolved' }],
      })
      const letter = await acts.letter(letterId)
      expect(letter).toMatchObject({
        state: 'done',
        endedAt: noon + minute,
        updatedAt: noon + minute,
        redrives: 0,
      })
      expect(letter.letter).toMatchObject({ requeues: 1, nextRedriveAt: null })
      expect(letter.letter.redrives).toMatchObject([
        { number: 1, outcome: 'resolved', endedAt: noon + minute },
      ])
      expect(letter.failure).toMatchObject(refused)
      expect(await given.storage.counts({ queue: letters })).toMatchObject([
        { leased: 0, done: 1, completed: 0 },
      ])
      expect(await given.storage.counts({ queue: work })).toMatchObject([
        { accepted: 2, completed: 1, deadLettered: 1 },
      ])
    })

    it('resolves it also where done items are kept, and stays resolved when they are forgotten', async () => {
      const { work, letterId, sent } = await oneSent({ keepDoneUs: minute })
      await acts.complete(await acts.take(sent), noon + 1)
      expect(await acts.items(work)).toMatchObject([{ state: 'done', letterId }])
      const resolved = await acts.letter(letterId)
      expect(resolved).toMatchObject({ state: 'done', endedAt: noon + 1 })
      await given.run({ op: 'advance', now: noon + hour, countMax: 10 })
      expect(await acts.items(work)).toEqual([])
      expect(await acts.letter(letterId)).toEqual(resolved)
    })

    it('resolves it in a batch with ordinary items, and in several commands of one write', async () => {
      const { work } = await acts.queues()
      const ids = await acts.bury(work, newItems(4))
      await acts.redrive(ids)
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
      expect(await given.storage.counts({ queue: work })).toMatchObject([{ completed: 8 }])
    })

    it('does not resolve it when the completion was refused', async () => {
      const { work, letterId, sent } = await oneSent()
      await acts.take(sent)
      const ids = [sent.id, unknownId]
      await given.run({ op: 'complete', queue: work, partition: 0, ids, now: noon })
      expect(await acts.letter(letterId)).toMatchObject({ state: 'leased' })
    })
  })

  describe('that dies again', () => {
    const other = { reason: 'http_410', errorClass: 'Gone', message: 'no such shop', stack: 'at x' }
    const ways = {
      'declared dead': async (queue: string) => {
        await acts.declareDead(await acts.take({ queue, partition: 0 }), other, noon + minute)
      },
      'given back too often': async (queue: string) => {
        await acts.giveBack(await acts.take({ queue, partition: 0 }), noon + 1)
        await acts.giveBack(await acts.take({ queue, partition: 0 }), noon + minute)
      },
      'its lease ended too often': async (queue: string) => {
        await acts.take({ queue, partition: 0 })
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
      it(`comes back to the same letter: ${way}`, async () => {
        const { letters, work, letterId } = await oneSent({
          attemptsMax: 1,
          leaseUs: minute,
          expireUs: 2 * hour,
        })
        const before = await acts.letter(letterId)
        await kill(work)
        const letter = await acts.letter(letterId)
        expect(letter).toMatchObject({
          id: letterId,
          state: 'waiting',
          availableAt: null,
          redrives: 1,
          diedAt: before.diedAt,
          createdAt: before.createdAt,
          attempts: 0,
          failure: { reason: reasons[way as keyof typeof ways] },
        })
        // One more for each attempt of the redrive before its last.
        const earlier = way === 'given back too often' ? ['retried'] : []
        expect(letter.history.slice(0, -1).map(({ reason }) => reason)).toEqual(earlier)
        expect(letter.history.at(-1)).toEqual(before.failure)
        expect(letter.updatedAt).toBe(letter.failure?.lastFailedAt)
        expect(letter.letter.redrives).toMatchObject([
          { number: 1, outcome: 'failed', endedAt: letter.updatedAt },
        ])
        expect(letter.letter).toMatchObject({ requeues: 1, nextRedriveAt: null })
        expect(await acts.items(work)).toEqual([])
        expect(await acts.items(letters)).toHaveLength(1)
        expect(await given.storage.counts({ queue: letters })).toMatchObject([
          { accepted: 1, waiting: 1, leased: 0 },
        ])
        expect(await given.storage.counts({ queue: work })).toMatchObject([
          { accepted: 2, deadLettered: 2, dropped: 0 },
        ])
      })
    }

    it('says where it went: the change names the letter', async () => {
      const { letters, work, letterId, sent } = await oneSent()
      const item = await acts.take(sent)
      const settled = await acts.declareDead(item, other, noon + 1)
      expect(settled).toEqual({
        isSettled: true,
        changes: [
          {
            fromId: item.id,
            fromQueue: work,
            fromPartition: 0,
            to: 'returned',
            because: 'declared-dead',
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

    it('from another queue than its own, with or without a dead queue there', async () => {
      const { work } = await acts.queues()
      const plain = await given.queue({ onDead: 'keep' })
      const withDead = (await acts.queues()).work
      for (const target of [plain, withDead]) {
        const [letterId = ''] = await acts.bury(work, newItems(1))
        const sent = await acts.send(letterId, noon, target)
        await acts.declareDead(await acts.take(sent))
        expect(await acts.letter(letterId)).toMatchObject({ state: 'waiting', redrives: 1 })
        expect(await acts.items(target)).toEqual([])
      }
    })

    it('changes its group when the cause is another, and keeps it when it is the same', async () => {
      const { work, letters, letterId, sent } = await oneSent()
      const { groupId } = await acts.letter(letterId)
      await acts.declareDead(await acts.take(sent), { ...refused, message: 'HTTP 503: upstream' })
      expect((await acts.letter(letterId)).groupId).toBe(groupId)
      await acts.send(letterId)
      await acts.declareDead(await acts.take({ queue: work, partition: 0 }), other)
      const after = await acts.letter(letterId)
      expect(after.groupId).not.toBe(groupId)
      expect(after.history.map((failure: Failure) => failure.reason)).toEqual(['http_503', 'http_503'])
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

    it('is DEAD at the cap of its policy, and goes back only when a person says so', async () => {
      const { work, letters } = await acts.queues(
        {},
        { redrive: { mode: 'manual', redrivesMax: 2, backoff: inAnHour } },
      )
      const [letterId = ''] = await acts.bury(work, newItems(1))
      for (const at of [noon + 1, noon + 2]) {
        const sent = await acts.send(letterId, at)
        await acts.declareDead(await acts.take(sent, at), refused, at)
      }
      expect(await acts.letter(letterId)).toMatchObject({
        state: 'dead',
        endedAt: noon + 2,
        redrives: 2,
        diedAt: noon,
      })
      expect(await given.storage.counts({ queue: letters })).toMatchObject([
        { dead: 1, waiting: 0, leased: 0 },
      ])
      const told = async (how: object) => (await acts.redrive([letterId], { now: noon + 3, ...how }))[0]
      expect(await told({ isDeadAllowed: false, isCapped: false })).toMatchObject({ why: 'dead' })
      expect(await told({ isDeadAllowed: true, isCapped: true })).toMatchObject({ why: 'exhausted' })
      expect(await told({ isDeadAllowed: true, isCapped: false })).toMatchObject({
        isStarted: true,
        number: 3,
      })
      await acts.declareDead(await acts.take({ queue: work, partition: 0 }), refused, noon + 4)
      expect(await acts.letter(letterId)).toMatchObject({ state: 'dead', redrives: 3, endedAt: noon + 4 })
      await told({ isDeadAllowed: true, isCapped: false })
      await acts.complete(await acts.take({ queue: work, partition: 0 }))
      expect(await acts.letter(letterId)).toMatchObject({ state: 'done', redrives: 3 })
    })

    it('remembers its redrives, newest first, as many as are kept, and goes on counting', async () => {
      const redrive = { mode: 'manual', redrivesMax: 1_000, backoff: inAnHour } as const
      const { work } = await acts.queues({}, { redrive })
      const [letterId = ''] = await acts.bury(work, newItems(1))
      const rounds = redrivesKept + 3
      for (let round = 1; round <= rounds; round++) {
        const sent = await acts.send(letterId, noon + round * second)
        expect(sent.number).toBe(round)
        await acts.declareDead(
          await acts.take(sent),
          { message: `round ${round}` },
          noon + round * second + 1,
        )
      }
      const letter = await acts.letter(letterId)
      expect(letter).toMatchObject({ redrives: rounds, failure: { message: `round ${rounds}` } })
      expect(letter.letter.requeues).toBe(rounds)
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

    it('together with others: redrives and ordinary items of one batch each go their own way', async () => {
      const { work, letters } = await acts.queues({ expireUs: hour })
      const ids = await acts.bury(work, newItems(50))
      await acts.redrive(ids)
      await given.run({ op: 'produce', queue: work, partition: 0, items: newItems(50, 'plain'), now: noon })
      const { changes } = await given.run({ op: 'advance', now: noon + hour, countMax: 1_000 })
      expect(changes.filter(({ to }) => to === 'returned')).toHaveLength(50)
      expect(changes.filter(({ to }) => to === 'moved')).toHaveLength(50)
      const all = await acts.items(letters)
      expect(all).toHaveLength(100)
      expect(
        all
          .filter(({ redrives }) => redrives === 1)
          .map(({ rootId }) => rootId)
          .toSorted(),
      ).toEqual(ids.toSorted())
    })
  })

  describe('whose outcome nobody can tell', () => {
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
        it(`is unknown, and says so: ${way} while ${isLeased ? 'leased' : 'waiting'}`, async () => {
          const { work, letters, letterId, sent } = await oneSent({}, { redrive: automatic })
          if (isLeased) await acts.take(sent)
          const before = await acts.letter(letterId)
          await lose(work, sent.id)
          const letter = await acts.letter(letterId)
          expect(letter).toMatchObject({ id: letterId, state: 'waiting', redrives: 1, diedAt: noon })
          expect(letter.failure).toMatchObject({ reason: 'outcome_unknown', errorClass: '', stack: '' })
          expect(letter.history).toEqual([before.failure])
          expect(letter.letter).toMatchObject({ requeues: 1, nextRedriveAt: null })
          const [record] = letter.letter.redrives
          expect(record).toMatchObject({ number: 1, outcome: 'unknown' })
          expect(record?.endedAt).toBe(letter.updatedAt)
          expect(letter.updatedAt).toBeGreaterThanOrEqual(noon)
          expect(await given.storage.counts({ queue: letters })).toMatchObject([{ waiting: 1, leased: 0 }])
          if (lose === ways['its queue was deleted']) return
          const [again] = await acts.redrive([letterId], { now: noon + 10_000 * day, isDueOnly: true })
          expect(again).toMatchObject({ isStarted: false, why: 'not-due' })
        })
      }
    }

    it('ends when the store’s clock says, where the command tells no time', async () => {
      const place = await createPlace(given.name)
      try {
        const clock = { now: () => noon + 7 }
        const store = await place.open({ clock })
        const theirs = letterActs({ ...given, storage: store, run: (command) => run(store, command) })
        for (const queue of [{ name: 'letters' }, { name: 'work', deadQueue: 'letters' }]) {
          await run(store, { op: 'create-queue', queue, now: noon })
        }
        const [letterId = ''] = await theirs.bury('work', newItems(1))
        const sent = await theirs.send(letterId)
        await run(store, { op: 'delete', queue: 'work', partition: 0, ids: [sent.id] })
        expect(await theirs.newest(letterId)).toMatchObject({ outcome: 'unknown', endedAt: noon + 7 })
        expect(await theirs.letter(letterId)).toMatchObject({
          updatedAt: noon + 7,
          failure: { lastFailedAt: noon + 7 },
        })
      } finally {
        await place.drop()
      }
    })

    it('counts towards the cap like a failure', async () => {
      const once = { mode: 'manual', redrivesMax: 1, backoff: inAnHour } as const
      const { work, letterId, sent } = await oneSent({}, { redrive: once })
      await given.run({ op: 'delete', queue: work, partition: 0, ids: [sent.id] })
      expect(await acts.letter(letterId)).toMatchObject({ state: 'dead', redrives: 1 })
    })

    it('of many letters at once, those of a queue that is deleted', async () => {
      const { work } = await acts.queues({ partitions: 2 })
      const ids = await acts.bury(work, newItems(30))
      await acts.redrive(ids)
      await given.run({ op: 'delete-queue', name: work })
      const letters = await given.storage.getLetters(ids)
      expect(new Set(letters.map(({ state, redrives }) => `${state} ${redrives}`))).toEqual(
        new Set(['waiting 1']),
      )
    })

    it('is not what happens when a done item of it is deleted: that one was processed', async () => {
      const { work, letterId, sent } = await oneSent({ keepDoneUs: day })
      await acts.complete(await acts.take(sent))
      const resolved = await acts.letter(letterId)
      await given.run({ op: 'delete', queue: work, partition: 0, ids: [sent.id] })
      expect(await acts.letter(letterId)).toEqual(resolved)
    })
  })

  describe('whose letter is gone', () => {
    it('makes a new letter of its item when that dies: never lost', async () => {
      const { work, letters, letterId, sent } = await oneSent()
      await given.run({ op: 'delete', queue: letters, partition: 0, ids: [letterId] })
      const item = await acts.take(sent)
      expect(await acts.declareDead(item)).toMatchObject({ changes: [{ to: 'moved', queue: letters }] })
      const [letter, ...others] = await acts.items(letters)
      expect(others).toEqual([])
      expect(letter).toMatchObject({
        sourceId: item.id,
        state: 'waiting',
        redrives: 0,
        origin: { name: work },
        payload: bytes('item-0'),
        letterId: null,
      })
      expect(letter?.rootId).not.toBe(letterId)
    })

    it('completes, or is deleted, like any other item', async () => {
      const { work, letters } = await acts.queues()
      const ids = await acts.bury(work, newItems(2))
      await acts.redrive(ids)
      await given.run({ op: 'delete', queue: letters, partition: 0, ids })
      const item = await acts.take({ queue: work, partition: 0 })
      expect(await acts.complete(item)).toMatchObject({ isSettled: true, changes: [{ to: 'removed' }] })
      const [rest] = await acts.items(work)
      await given.run({ op: 'delete', queue: work, partition: 0, ids: [rest?.id ?? ''] })
      expect(await given.storage.counts({ queue: work })).toMatchObject([
        { completed: 1, deleted: 1, waiting: 0 },
      ])
    })

    it('does not end a later redrive of the letter: each ends its own', async () => {
      const { work, letters, letterId, sent } = await oneSent()
      const ends = [{ letterId, outcome: 'unknown', failure: null }] as const
      expect(await given.run({ op: 'end-redrives', ends, now: noon + 1 })).toEqual([
        { letterId, state: 'waiting' },
      ])
      const second = await acts.send(letterId, noon + 2)
      expect(second.number).toBe(2)
      const first = await acts.take(sent)
      expect(first.id).toBe(sent.id)
      await acts.complete(first, noon + 3)
      expect(await acts.newest(letterId)).toMatchObject({ number: 2, outcome: null })
      await acts.complete(await acts.take(second), noon + 4)
      expect(await acts.letter(letterId)).toMatchObject({ state: 'done', endedAt: noon + 4 })

      const [other = ''] = await acts.bury(work, newItems(1, 'other'))
      const sentFirst = await acts.send(other)
      await given.run({
        op: 'end-redrives',
        ends: [{ letterId: other, outcome: 'unknown', failure: null }],
        now: noon,
      })
      await acts.send(other)
      const late = await acts.take(sentFirst)
      await acts.declareDead(late, refused, noon + 5)
      expect(await acts.newest(other)).toMatchObject({ number: 2, outcome: null })
      const strangers = (await acts.items(letters)).filter(({ sourceId }) => sourceId === late.id)
      expect(strangers).toMatchObject([{ payload: bytes('other-0'), state: 'waiting' }])
    })
  })

  describe('is not sent', () => {
    const whyNot = async (letterId: string, how: object = {}): Promise<NotSent | 'sent'> => {
      const before = await given.storage.getLetters([letterId])
      const [told] = await acts.redrive([letterId], how)
      if (told?.isStarted !== false) return 'sent'
      expect(await given.storage.getLetters([letterId])).toEqual(before)
      return told.why
    }
    const to = (letterId: string, queue: string | null, edit: number | null = null) => ({
      letters: [{ letterId, queue, edit }],
    })

    it('when it is missing: unknown, or an ordinary item; or in the archive, and says which', async () => {
      const { work, letters } = await acts.queues()
      const { ids } = await given.run({
        op: 'produce',
        queue: work,
        partition: 0,
        items: newItems(1),
        now: noon,
      })
      const [archived = ''] = await acts.bury(work, newItems(1))
      await acts.discard([archived])
      await given.run({ op: 'archive', queue: letters, endedBefore: noon + 1, countMax: 10, now: noon })
      for (const id of [unknownId, 'no id', ids[0] ?? '']) expect(await whyNot(id)).toBe('missing')
      expect(await whyNot(archived)).toBe('archived')
      const letterIds = [unknownId, ids[0] ?? '', archived]
      expect((await acts.discard(letterIds)).map(({ why }) => why)).toEqual([
        'missing',
        'missing',
        'archived',
      ])
    })

    it('when a consumer of the dead queue holds it', async () => {
      const { work, letters } = await acts.queues()
      const [letterId = ''] = await acts.bury(work, newItems(1))
      const held = await acts.take({ queue: letters, partition: 0 })
      expect(await whyNot(letterId)).toBe('leased')
      expect(await acts.discard([letterId])).toMatchObject([{ isDiscarded: false, why: 'leased' }])
      await acts.giveBack(held)
      // Back at the tail it has another id, and is known by the same.
      expect(await whyNot(letterId)).toBe('sent')
      expect(await acts.letter(letterId)).toMatchObject({ rootId: letterId, state: 'leased', attempts: 1 })
      const item = await acts.take({ queue: work, partition: 0 })
      expect(await acts.declareDead(item)).toMatchObject({ changes: [{ to: 'returned', queue: letters }] })
      expect(await acts.letter(letterId)).toMatchObject({ state: 'waiting', redrives: 1 })
    })

    it('when it is resolved or discarded', async () => {
      const { work } = await acts.queues()
      const [resolved = '', discarded = ''] = await acts.bury(work, newItems(2))
      const sent = await acts.send(resolved)
      await acts.complete(await acts.take(sent))
      await acts.discard([discarded])
      const anyhow = { isDeadAllowed: true, isCapped: false }
      expect(await whyNot(resolved, anyhow)).toBe('resolved')
      expect(await whyNot(discarded, anyhow)).toBe('discarded')
      expect((await acts.discard([resolved, discarded])).map(({ why }) => why)).toEqual([
        'resolved',
        'discarded',
      ])
    })

    it('when a consumer of the dead queue completed it, or it died there', async () => {
      const { work, letters } = await acts.queues({}, { attemptsMax: 1 })
      const [done = '', dead = ''] = await acts.bury(work, newItems(2))
      await acts.complete(await acts.take({ queue: letters, partition: 0 }))
      await acts.declareDead(await acts.take({ queue: letters, partition: 0 }))
      expect(await whyNot(done)).toBe('resolved')
      expect(await whyNot(dead)).toBe('dead')
      expect(await whyNot(dead, { isDeadAllowed: true })).toBe('sent')
    })

    it('when the redrives of its policy are used up, unless nobody asks for that', async () => {
      const letters = await given.queue({ redrive: { mode: 'manual', redrivesMax: 0, backoff: inAnHour } })
      const target = await given.queue()
      const [letterId = ''] = await acts.capture(letters, [aLetter()])
      expect(await whyNot(letterId, to(letterId, target))).toBe('exhausted')
      expect(await whyNot(letterId, { ...to(letterId, target), isCapped: false })).toBe('sent')
    })

    it('when there is no queue to send it to', async () => {
      const { work, letters } = await acts.queues()
      const origins = [
        anOrigin(),
        // A topic of a cluster that happens to have the name of a queue is not that queue, nor is a webhook.
        anOrigin({ name: work }),
        anOrigin({ kind: 'webhook', name: work, cluster: null }),
        anOrigin({ kind: 'queue', name: 'never-there', partition: 0, group: null, cluster: null }),
      ]
      const ids = await acts.capture(
        letters,
        origins.map((origin) => aLetter({ origin })),
      )
      for (const id of ids) expect(await whyNot(id)).toBe('no-target')
      const [buried = ''] = await acts.bury(work, newItems(1))
      expect(await whyNot(buried, to(buried, 'never-there'))).toBe('no-target')
      await given.run({ op: 'delete-queue', name: work })
      expect(await whyNot(buried)).toBe('no-target')
    })

    it('but to the queue of that name, whatever who captured it called that', async () => {
      const { work, letters } = await acts.queues()
      const called = { name: work, group: null, cluster: null }
      const origins = [
        anOrigin({ ...called, kind: 'http', partition: null }),
        anOrigin({ ...called, kind: 'kafka', partition: 3 }),
        anOrigin({ ...called, kind: 'queue', partition: 0 }),
      ]
      const ids = await acts.capture(
        letters,
        origins.map((origin) => aLetter({ origin })),
      )
      for (const id of ids) expect(await whyNot(id)).toBe('sent')
      expect(await acts.items(work)).toHaveLength(3)
    })

    it('to a queue that takes the dead letters of others', async () => {
      const { work, letters } = await acts.queues()
      const elsewhere = (await acts.queues()).letters
      const [letterId = ''] = await acts.bury(work, newItems(1))
      expect(await whyNot(letterId, to(letterId, letters))).toBe('dead-target')
      expect(await whyNot(letterId, to(letterId, elsewhere))).toBe('dead-target')
    })

    it('to a queue into which letters were captured, also when they are gone', async () => {
      const { work } = await acts.queues()
      const [letterId = ''] = await acts.bury(work, newItems(1))
      const captured = await given.queue()
      const [other = ''] = await acts.capture(captured, [aLetter()])
      expect(await whyNot(letterId, to(letterId, captured))).toBe('dead-target')
      await acts.discard([other])
      await given.run({ op: 'archive', queue: captured, endedBefore: noon + 1, countMax: 10, now: noon })
      expect(await whyNot(letterId, to(letterId, captured))).toBe('dead-target')
    })

    it('but to a queue into which items were imported with a source id', async () => {
      const { work } = await acts.queues()
      const [letterId = ''] = await acts.bury(work, newItems(1))
      const imported = await given.queue()
      const items = [{ payload: bytes('x'), sourceId: 'elsewhere/1' }]
      await given.run({ op: 'import', queue: imported, partition: 0, items, now: noon })
      expect(await whyNot(letterId, to(letterId, imported))).toBe('sent')
    })

    it('to the queue that it is in itself', async () => {
      const letters = await given.queue()
      const [letterId = ''] = await acts.capture(letters, [aLetter()])
      expect(await whyNot(letterId, to(letterId, letters))).toBe('dead-target')
    })

    it('to its own origin once that takes dead letters of others', async () => {
      const letters = await given.queue()
      const origin = anOrigin({ kind: 'queue', name: letters, partition: 0, group: null, cluster: null })
      const store = await given.queue()
      const [letterId = ''] = await acts.capture(store, [aLetter({ origin })])
      await given.queue({ deadQueue: letters })
      expect(await whyNot(letterId)).toBe('dead-target')
    })

    it('with an edited version that is not there, or is another letter’s', async () => {
      const { work } = await acts.queues()
      const [letterId = '', other = ''] = await acts.bury(work, newItems(2))
      await given.run({ op: 'edit-letter', letterId: other, payload: bytes('x'), actor: 'ann', now: noon })
      expect(await whyNot(letterId, to(letterId, null, 1))).toBe('no-edit')
      expect(await whyNot(other, to(other, null, 2))).toBe('no-edit')
      expect(await whyNot(other, to(other, null, 1))).toBe('sent')
    })

    it('when only what is due is asked for, and it is not', async () => {
      const { work } = await acts.queues({}, { redrive: automatic })
      const manual = (await acts.queues()).work
      const [letterId = ''] = await acts.bury(work, newItems(1))
      const [never = ''] = await acts.bury(manual, newItems(1))
      expect(await acts.letter(letterId)).toMatchObject({ letter: { nextRedriveAt: noon + hour } })
      const due = (now: number) => ({ isDueOnly: true, now })
      expect(await whyNot(letterId, due(noon + hour - 1))).toBe('not-due')
      expect(await whyNot(never, due(noon + 1_000 * day))).toBe('not-due')
      expect(await whyNot(letterId, due(noon + hour))).toBe('sent')
      expect(await acts.letter(letterId)).toMatchObject({ letter: { nextRedriveAt: null } })
    })
  })

  describe('by policy', () => {
    it('is due again after each failure, and no more at the cap', async () => {
      const delaysUs = [minute, hour, day]
      const redrive = {
        mode: 'auto',
        redrivesMax: 2,
        backoff: { kind: 'list', delaysUs, jitter: 0 },
      } as const
      const { work } = await acts.queues({}, { redrive })
      const [letterId = ''] = await acts.bury(work, newItems(1))
      const next = async () => (await acts.letter(letterId)).letter.nextRedriveAt
      expect(await next()).toBe(noon + minute)
      const dieAgain = async (now: number) => {
        const [told] = await acts.redrive([letterId], { isDueOnly: true, actor: 'policy', now })
        expect(told).toMatchObject({ isStarted: true })
        await acts.declareDead(await acts.take({ queue: work, partition: 0 }), refused, now)
      }
      await dieAgain(noon + minute)
      expect(await next()).toBe(noon + minute + hour)
      await dieAgain(noon + day)
      expect(await next()).toBeNull()
      expect(await acts.letter(letterId)).toMatchObject({ state: 'dead', redrives: 2 })
    })

    it('is spread by its jitter within its bounds', async () => {
      const backoff = { kind: 'fixed', delayUs: hour, jitter: 0.5 } as const
      const { work } = await acts.queues({}, { redrive: { mode: 'auto', redrivesMax: 3, backoff } })
      const ids = await acts.bury(work, newItems(40))
      const letters = await given.storage.getLetters(ids)
      const delays = letters.map(({ letter }) => (letter?.nextRedriveAt ?? 0) - noon)
      expect(Math.min(...delays)).toBeGreaterThanOrEqual(hour / 2)
      expect(Math.max(...delays)).toBeLessThanOrEqual(1.5 * hour)
      expect(new Set(delays).size).toBeGreaterThan(1)
    })
  })

  describe('that went elsewhere', () => {
    it('ends as it is told, once; what is not under way is passed over', async () => {
      const { work } = await acts.queues({}, { redrive: automatic })
      const [a = '', b = '', c = '', idle = ''] = await acts.bury(work, newItems(4))
      const sent = await acts.redrive([a, b, c])
      const ids = sent.flatMap((each) => (each.isStarted ? [each.id] : []))
      const failure = aFailure({ message: 'refused there', lastFailedAt: noon + 1 })
      const ends = [
        { letterId: a, outcome: 'resolved', failure: null },
        { letterId: b, outcome: 'failed', failure },
        { letterId: c, outcome: 'unknown', failure: null },
        { letterId: idle, outcome: 'resolved', failure: null },
        { letterId: unknownId, outcome: 'resolved', failure: null },
        { letterId: a, outcome: 'failed', failure },
      ] as const
      expect(await given.run({ op: 'end-redrives', ends, now: noon + minute })).toEqual([
        { letterId: a, state: 'done' },
        { letterId: b, state: 'waiting' },
        { letterId: c, state: 'waiting' },
        { letterId: idle, state: null },
        { letterId: unknownId, state: null },
        { letterId: a, state: null },
      ])
      const [first, second, third, fourth] = await given.storage.getLetters([a, b, c, idle])
      expect(first).toMatchObject({ state: 'done', endedAt: noon + minute, redrives: 0 })
      expect(second).toMatchObject({ redrives: 1, failure, letter: { nextRedriveAt: noon + minute + hour } })
      expect(third).toMatchObject({
        redrives: 1,
        failure: { reason: 'http_503' },
        letter: { nextRedriveAt: null },
      })
      expect(third?.letter?.redrives).toMatchObject([{ outcome: 'unknown', endedAt: noon + minute }])
      expect(fourth).toMatchObject({ redrives: 0, letter: { requeues: 0 } })
      await given.run({ op: 'delete', queue: work, partition: 0, ids })
      expect(await acts.letter(a)).toEqual(first)
    })
  })

  it('and an edit reject what is no letter', async () => {
    const { work } = await acts.queues()
    const { ids } = await given.run({
      op: 'produce',
      queue: work,
      partition: 0,
      items: newItems(1),
      now: noon,
    })
    for (const letterId of [unknownId, ids[0] ?? '']) {
      const edit = { op: 'edit-letter', letterId, payload: bytes('x'), actor: 'ann', now: noon } as const
      await expectRefusal(given.run(edit), 'LETTER_NOT_FOUND')
    }
    expect((await acts.items(work)).map(({ payload }) => textOf(payload))).toEqual(['item-0'])
  })
})

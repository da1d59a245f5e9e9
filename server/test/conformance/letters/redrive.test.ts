/** Starting a redrive: the item that is sent, and at most one redrive in progress per letter. */
import { describe, expect, it } from 'vitest'
import { redriveHolder } from '../../../src/core/dead-letters/letter.ts'
import { aFailure, bytes, day, hour, minute, newItems, noon, toText } from '../../make.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { aLetter, automatic, createLetterActions, refused } from '../support/letter-actions.ts'
import { describeStores } from '../support/test-stores.ts'

const unknownId = '0'.repeat(27)

describeStores('a redrive', (given) => {
  const actions = createLetterActions(given)

  describe('of prefetched letters', () => {
    const prefetch = (ids: readonly string[]) => given.storage.prefetchLetters(ids)

    it('prefetched letters that were sent or discarded since are not sent', async () => {
      const { work } = await actions.createQueues()
      const ids = await actions.produceDead(work, newItems(3))
      const [first = '', second = '', third = ''] = ids
      await prefetch([...ids, ...ids, unknownId, 'no id'])
      await actions.redrive([first])
      await actions.discard([second])
      expect(await actions.redrive([...ids, unknownId])).toMatchObject([
        { letterId: first, isStarted: false, refusal: 'redriving' },
        { letterId: second, isStarted: false, refusal: 'discarded' },
        { letterId: third, isStarted: true, number: 1 },
        { letterId: unknownId, isStarted: false, refusal: 'missing' },
      ])
      expect((await actions.readLetter(first)).letter.redrives).toHaveLength(1)
    })

    it('a prefetched letter that returned since is sent', async () => {
      const { letterId, work } = await actions.redriveNewLetter()
      await prefetch([letterId])
      await actions.declareDead(await actions.leaseOne({ queue: work, partition: 0 }))
      expect(await actions.redrive([letterId])).toMatchObject([{ letterId, isStarted: true, number: 2 }])
      expect((await actions.readLetter(letterId)).letter.redrives.map(({ number }) => number)).toEqual([2, 1])
    })

    it('a letter that is prefetched several times is sent once', async () => {
      const { work } = await actions.createQueues()
      const ids = await actions.produceDead(work, newItems(300))
      await prefetch(ids)
      await prefetch(ids)
      expect((await actions.redrive(ids)).every(({ isStarted }) => isStarted)).toBe(true)
      expect((await actions.redrive(ids)).every(({ isStarted }) => !isStarted)).toBe(true)
      expect(await actions.listItems(work)).toHaveLength(300)
    })

    it('a redrive notices that a prefetched letter or its queue is gone', async () => {
      const { work, letters } = await actions.createQueues()
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      await prefetch([letterId])
      await actions.eraseLetters({ work, letters })
      expect(await actions.redrive([letterId])).toMatchObject([{ isStarted: false, refusal: 'missing' }])
    })
  })

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

    it('a redrive sends the same bytes to the origin as a new item that names its letter', async () => {
      const { work } = await actions.createQueues({ partitions: 3, expireTimeoutUs: 5 * hour })
      const [letterId = ''] = await actions.produceDead(
        work,
        [{ ...whole, attemptsMax: 9 }],
        refused,
        noon,
        2,
      )
      const sent = await actions.redriveOne(letterId, noon + minute)
      expect(sent).toEqual({
        letterId,
        isStarted: true,
        queue: work,
        partition: sent.partition,
        id: sent.id,
        number: 1,
      })
      expect(await actions.listItems(work)).toEqual([
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
          deadLetteredAt: null,
          letterId,
          retryCount: 1,
          groupId: null,
          letter: null,
        },
      ])
      expect(await given.storage.readCounts({ queue: work })).toMatchObject(
        [0, 1, 2].map((partition) => ({ partition, waiting: partition === sent.partition ? 1 : 0 })),
      )
    })

    it('a redrive can name another target queue', async () => {
      const letters = await given.queue()
      const other = await given.queue()
      const [letterId = ''] = await actions.capture(letters, [aLetter({ ...whole, sourceId: 'kafka/7' })])
      const sent = await actions.redriveOne(letterId, noon, other)
      expect(sent.queue).toBe(other)
      expect(await actions.listItems(other)).toMatchObject([
        { ...whole, letterId, sourceId: null, origin: null },
      ])
      expect((await actions.readNewestRedrive(letterId)).target).toEqual({
        kind: 'queue',
        name: other,
        partition: 0,
        id: sent.id,
      })
    })

    it('a redriven item is leased like any other item', async () => {
      const { letterId, sent } = await actions.redriveNewLetter()
      expect(await actions.leaseOne(sent)).toMatchObject({
        id: sent.id,
        letterId,
        retryCount: 1,
        attempts: 1,
      })
    })

    it('the list of edited versions has the payloads of the newest ones, up to 16 MiB', async () => {
      const { work } = await actions.createQueues()
      const [letterId = ''] = await actions.produceDead(work, [whole])
      const sizes = [9, 9, 9].map((megabytes) => megabytes * 2 ** 20)
      for (const size of sizes) {
        const payload = new Uint8Array(size)
        await given.run({ op: 'edit-letter', letterId, payload, actor: 'ann', now: noon })
      }
      const edits = await given.storage.listEdits(letterId)
      expect(edits.map(({ number, payload }) => [number, payload.length])).toEqual([
        [1, 0],
        [2, sizes[1]],
        [3, sizes[2]],
      ])
      expect(edits.map(({ payloadBytes }) => payloadBytes)).toEqual([sizes[0], undefined, undefined])
    })

    it('a redrive can send an edited version and keeps the original', async () => {
      const { work } = await actions.createQueues()
      const [letterId = ''] = await actions.produceDead(work, [whole])
      const before = await actions.readLetter(letterId)
      const edit = { op: 'edit-letter', letterId, actor: 'ann', now: noon } as const
      expect(await given.run({ ...edit, payload: bytes('corrected') })).toEqual({ number: 1 })
      expect(
        await given.run({ ...edit, key: null, headers: [['x', bytes('y')]], actor: 'bob', now: noon + 1 }),
      ).toEqual({
        number: 2,
      })
      expect(await actions.readLetter(letterId)).toMatchObject(whole)
      const { payload, key, headers } = whole
      expect(await given.storage.listEdits(letterId)).toEqual([
        { number: 1, at: noon, actor: 'ann', payload: bytes('corrected'), key, headers },
        { number: 2, at: noon + 1, actor: 'bob', payload, key: null, headers: [['x', bytes('y')]] },
      ])

      await actions.redrive([], { letters: [{ letterId, queue: null, edit: 2 }] })
      expect(await actions.listItems(work)).toMatchObject([
        { ...whole, key: null, headers: [['x', bytes('y')]], letterId },
      ])
      expect(await actions.readNewestRedrive(letterId)).toMatchObject({ edit: 2 })
      await actions.declareDead(await actions.leaseOne({ queue: work, partition: 0 }))
      expect(await actions.readLetter(letterId)).toMatchObject({
        ...whole,
        retryCount: 1,
        createdAt: before.createdAt,
      })

      await actions.redrive([], { letters: [{ letterId, queue: null, edit: 1 }] })
      expect(await actions.listItems(work)).toMatchObject([{ ...whole, payload: bytes('corrected') }])
    })

    it('a redrive of many letters reports a reason for each one that is not sent', async () => {
      const { work } = await actions.createQueues()
      const ids = await actions.produceDead(work, newItems(300))
      const [first = '', second = ''] = ids
      await actions.discard([first])
      const sent = await actions.redrive([...ids, unknownId, second])
      expect(sent.map(({ letterId }) => letterId)).toEqual([...ids, unknownId, second])
      expect(sent.flatMap((each) => (each.isStarted ? [] : [[each.letterId, each.refusal]]))).toEqual([
        [first, 'discarded'],
        [unknownId, 'missing'],
        [second, 'redriving'],
      ])
      const items = await actions.listItems(work)
      expect(items.map(({ letterId }) => letterId).toSorted()).toEqual(ids.slice(1).toSorted())
      for (const item of items) {
        const started = sent.find((each) => each.isStarted && each.id === item.id)
        expect(started?.letterId).toBe(item.letterId)
      }
    })

    it('a redrive is committed with its write or not at all', async () => {
      const { work, letters } = await actions.createQueues()
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      const before = await actions.readLetter(letterId)
      const rules = { isDeadAllowed: false, isCapped: true, actor: 'ann', now: noon }
      await expectRefusal(
        given.storage.write([
          { op: 'redrive', letters: [{ letterId, queue: null }], ...rules },
          { op: 'produce', queue: 'nowhere', partition: 0, items: newItems(1), now: noon },
        ]),
        'QUEUE_NOT_FOUND',
      )
      expect(await actions.readLetter(letterId)).toEqual(before)
      expect(await actions.listItems(work)).toEqual([])
      expect(await given.storage.readCounts({ queue: letters })).toMatchObject([{ waiting: 1, leased: 0 }])
    })
  })

  describe('in progress', () => {
    it('a letter records who redrove it, when and where', async () => {
      const { letters, work, letterId, sent } = await actions.redriveNewLetter({}, {}, noon + minute)
      expect(await actions.readLetter(letterId)).toMatchObject({
        id: letterId,
        rootId: letterId,
        queue: letters,
        state: 'leased',
        lease: { holder: redriveHolder },
        attempts: 0,
        retryCount: 0,
        updatedAt: noon + minute,
        deadLetteredAt: noon,
        letter: {
          requeueCount: 1,
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
      expect(await given.storage.readCounts({ queue: letters })).toMatchObject([
        { waiting: 0, leased: 1, accepted: 1 },
      ])
    })

    it('a letter whose redrive is in progress cannot be settled', async () => {
      const { letters, letterId } = await actions.redriveNewLetter()
      const at = { queue: letters, partition: 0, now: noon + 1 }
      const missing = { isSettled: false, refused: [{ id: letterId, refusal: 'missing' }] }
      const before = await actions.readLetter(letterId)
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
      expect(await actions.readLetter(letterId)).toEqual(before)
    })

    it('a settle that includes a letter in redrive is refused as a whole', async () => {
      const { letters, work, letterId } = await actions.redriveNewLetter()
      const [other = ''] = await actions.produceDead(work, newItems(1, 'other'))
      await actions.leaseOne({ queue: letters, partition: 0 })
      const ids = [other, letterId]
      expect(await given.run({ op: 'complete', queue: letters, partition: 0, ids, now: noon })).toEqual({
        isSettled: false,
        refused: [{ id: letterId, refusal: 'missing' }],
      })
      expect(await actions.readLetter(other)).toMatchObject({ state: 'leased' })
    })

    it('a redrive stays in progress while its item lives', async () => {
      const { work, letterId, sent } = await actions.redriveNewLetter({ expireTimeoutUs: 100_000 * day })
      await actions.leaseOne(sent)
      const { changes } = await given.run({ op: 'advance', now: noon + 10_000 * day, countMax: 10 })
      expect(changes).toMatchObject([{ fromQueue: work, to: 'waiting', cause: 'lease-end' }])
      expect(await actions.readNewestRedrive(letterId)).toMatchObject({ outcome: null })
    })

    it('a redrive continues through retries, lease ends and schedules of its item', async () => {
      const { letterId, sent } = await actions.redriveNewLetter({ attemptsMax: 10, leaseTimeoutUs: minute })
      await actions.retryLater(await actions.leaseOne(sent))
      await actions.leaseOne(sent)
      await given.run({ op: 'advance', now: noon + hour, countMax: 10 })
      const item = await actions.leaseOne(sent, noon + hour)
      const { queue, partition, id } = item
      const items = [{ id, availableAt: noon + 2 * hour, isDead: false, error: refused }]
      await given.run({ op: 'retry', queue, partition, items, now: noon + hour })
      await given.run({ op: 'advance', now: noon + 2 * hour, countMax: 10 })
      const last = await actions.leaseOne(sent, noon + 2 * hour)
      expect(last).toMatchObject({ rootId: sent.id, letterId, retryCount: 1, attempts: 4 })
      expect(await actions.readLetter(letterId)).toMatchObject({
        state: 'leased',
        retryCount: 0,
        history: [],
      })
      await actions.complete(last, noon + 2 * hour)
      expect(await actions.readLetter(letterId)).toMatchObject({ state: 'done', endedAt: noon + 2 * hour })
    })

    it('a second redrive of a letter is refused and changes nothing', async () => {
      const { work, letterId } = await actions.redriveNewLetter()
      const before = await actions.readLetter(letterId)
      const again = { isDeadAllowed: true, isCapped: false, now: noon + 1 }
      expect(await actions.redrive([letterId], again)).toEqual([
        { letterId, isStarted: false, refusal: 'redriving' },
      ])
      expect(await actions.discard([letterId], noon + 1)).toEqual([
        { letterId, isDiscarded: false, refusal: 'redriving' },
      ])
      expect(await actions.readLetter(letterId)).toEqual(before)
      expect(await actions.listItems(work)).toHaveLength(1)
    })

    it('one of many concurrent redrives of a letter starts', async () => {
      const { work } = await actions.createQueues({ partitions: 2 })
      const ids = await actions.produceDead(work, newItems(20))
      const calls = await Promise.all(
        Array.from({ length: 8 }, async (_, index) =>
          actions.redrive(index % 2 === 0 ? ids : ids.toReversed(), { actor: `actor-${index}` }),
        ),
      )
      for (const letterId of ids) {
        const results = calls.map((call) => call.find((each) => each.letterId === letterId))
        expect(results.filter((each) => each?.isStarted)).toHaveLength(1)
        expect(results.flatMap((each) => (each?.isStarted === false ? [each.refusal] : []))).toEqual(
          Array.from({ length: 7 }, () => 'redriving'),
        )
      }
      expect((await actions.listItems(work)).map((item) => item.letterId).toSorted()).toEqual(ids.toSorted())
    })
  })

  describe('by policy', () => {
    it('an automatic redrive is due after each failure until the cap', async () => {
      const delaysUs = [minute, hour, day]
      const redrive = {
        mode: 'auto',
        redrivesMax: 2,
        backoff: { kind: 'list', delaysUs, jitter: 0 },
      } as const
      const { work } = await actions.createQueues({}, { redrive })
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      const next = async () => (await actions.readLetter(letterId)).letter.nextRedriveAt
      expect(await next()).toBe(noon + minute)
      const dieAgain = async (now: number) => {
        const [result] = await actions.redrive([letterId], { isDueOnly: true, actor: 'policy', now })
        expect(result).toMatchObject({ isStarted: true })
        await actions.declareDead(await actions.leaseOne({ queue: work, partition: 0 }), refused, now)
      }
      await dieAgain(noon + minute)
      expect(await next()).toBe(noon + minute + hour)
      await dieAgain(noon + day)
      expect(await next()).toBeNull()
      expect(await actions.readLetter(letterId)).toMatchObject({ state: 'dead', retryCount: 2 })
    })

    const spread = { kind: 'fixed', delayUs: hour, jitter: 0.5 } as const
    const expectSpread = async (ids: readonly string[]) => {
      const letters = await given.storage.getLetters(ids)
      const delays = letters.map(({ letter }) => (letter?.nextRedriveAt ?? 0) - noon)
      expect(delays).toHaveLength(40)
      expect(Math.min(...delays)).toBeGreaterThanOrEqual(hour / 2)
      expect(Math.max(...delays)).toBeLessThanOrEqual(1.5 * hour)
      expect(new Set(delays).size).toBeGreaterThan(30)
    }

    it('the jitter of automatic redrives stays within its bounds', async () => {
      const { work } = await actions.createQueues(
        {},
        { redrive: { mode: 'auto', redrivesMax: 3, backoff: spread } },
      )
      await expectSpread(await actions.produceDead(work, newItems(40)))
    })

    it('letters that were captured together get different jitter', async () => {
      const letters = await given.queue({ redrive: { mode: 'auto', redrivesMax: 3, backoff: spread } })
      await expectSpread(await actions.capture(letters, Array(40).fill(aLetter())))
      // Leased letters take another code path of the import.
      const held = aLetter({ lease: { holder: 'w', deadline: noon + day } })
      await expectSpread(await actions.capture(letters, Array(40).fill(held)))
    })
  })

  describe('to an external target', () => {
    it('an external outcome ends a redrive once and is ignored if none is in progress', async () => {
      const { work } = await actions.createQueues({}, { redrive: automatic })
      const [a = '', b = '', c = '', idle = ''] = await actions.produceDead(work, newItems(4))
      const sent = await actions.redrive([a, b, c])
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
      expect(first).toMatchObject({ state: 'done', endedAt: noon + minute, retryCount: 0 })
      expect(second).toMatchObject({
        retryCount: 1,
        failure,
        letter: { nextRedriveAt: noon + minute + hour },
      })
      expect(third).toMatchObject({
        retryCount: 1,
        failure: { errorCode: 'http_503' },
        letter: { nextRedriveAt: null },
      })
      expect(third?.letter?.redrives).toMatchObject([{ outcome: 'unknown', endedAt: noon + minute }])
      expect(fourth).toMatchObject({ retryCount: 0, letter: { requeueCount: 0 } })
      await given.run({ op: 'delete', queue: work, partition: 0, ids })
      expect(await actions.readLetter(a)).toEqual(first)
    })
  })

  it('every store refuses an edit of an unknown or archived letter with the same message', async () => {
    const { work, letters } = await actions.createQueues()
    const items = newItems(1)
    const { ids } = await given.run({ op: 'produce', queue: work, partition: 0, items, now: noon })
    const [archivedId = ''] = await actions.capture(letters, [aLetter()])
    await actions.discard([archivedId])
    await given.run({ op: 'archive', queue: letters, endedBefore: noon + 1, countMax: 10, now: noon + 1 })
    expect(await given.storage.getArchivedLetters([archivedId])).toHaveLength(1)
    for (const letterId of [unknownId, 'not-an-id', ids[0] ?? '', archivedId]) {
      const edit = { op: 'edit-letter', letterId, payload: bytes('x'), actor: 'ann', now: noon } as const
      const { message } = await expectRefusal(given.run(edit), 'LETTER_NOT_FOUND')
      expect(message).toBe(`letter ${letterId} does not exist or is archived`)
    }
    expect((await actions.listItems(work)).map(({ payload }) => toText(payload))).toEqual(['item-0'])
  })
})

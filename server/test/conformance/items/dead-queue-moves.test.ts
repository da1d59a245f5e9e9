import { describe, expect, it } from 'vitest'
import type { ItemToImport, NewItem } from '../../../src/storage/contract/items.ts'
import { aFailure, aNewItem, anOrigin, bytes, day, hour, minute, newItems, noon, toText } from '../../make.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('a dead queue', (given) => {
  const produce = async (queue: string, items: readonly NewItem[], partition = 0) =>
    (await given.run({ op: 'produce', queue, partition, items, now: noon })).ids
  const lease = async (queue: string, count: number, now = noon, partition = 0) => {
    const holders = Array.from({ length: count }, () => 'worker-1')
    return given.run({ op: 'lease', queue, partition, holders, now })
  }
  const declareDead = async (queue: string, ids: readonly string[], now = noon, partition = 0) => {
    const error = { errorCode: 'http_410', errorClass: 'Gone', message: 'no such shop', stack: 'at x' }
    const items = ids.map((id) => ({ id, availableAt: null, isDead: true, error }))
    return given.run({ op: 'retry', queue, partition, items, now })
  }
  const giveBack = async (queue: string, id = '', now = noon) => {
    const items = [{ id, availableAt: null, isDead: false, error: null }]
    return given.run({ op: 'retry', queue, partition: 0, items, now })
  }
  const list = async (queue: string) => given.storage.listItems({ queue, countMax: 1_000 })

  describe('receives dead items', () => {
    it('a dead letter keeps bytes, texts, failure and origin as a new item', async () => {
      const letters = await given.queue({ expireTimeoutUs: 9 * hour, partitions: 2 })
      const queue = await given.queue({ deadQueue: letters, partitions: 3 })
      const item = aNewItem({
        payload: new Uint8Array([0, 255, 128]),
        kind: 'order',
        encoding: 'json',
        reference: 'shop/7',
        key: bytes('key'),
        headers: [
          ['b', bytes('1')],
          ['a', null],
          ['b', bytes('2')],
        ],
        priority: 4,
      })
      const [id = ''] = await produce(queue, [item], 2)
      await lease(queue, 1, noon, 2)
      const settled = await declareDead(queue, [id], noon + minute, 2)

      const [letter, ...others] = await list(letters)
      expect(others).toEqual([])
      expect(await list(queue)).toEqual([])
      const failure = {
        errorCode: 'http_410',
        errorClass: 'Gone',
        message: 'no such shop',
        stack: 'at x',
        attempts: 1,
        firstFailedAt: noon + minute,
        lastFailedAt: noon + minute,
        worker: 'worker-1',
      }
      expect(letter).toMatchObject({
        ...item,
        state: 'waiting',
        availableAt: null,
        queue: letters,
        sourceId: id,
        attempts: 0,
        createdAt: noon + minute,
        updatedAt: noon + minute,
        expireDeadline: noon + minute + 9 * hour,
        deadLetteredAt: noon + minute,
        failure,
        origin: {
          kind: 'queue',
          name: queue,
          partition: 2,
          id,
          group: null,
          cluster: null,
          createdAt: noon,
        },
      })
      expect(letter?.rootId).toBe(letter?.id)
      expect(settled).toEqual({
        isSettled: true,
        changes: [
          {
            fromId: id,
            fromQueue: queue,
            fromPartition: 2,
            to: 'moved',
            cause: 'declared-dead',
            id: letter?.id,
            queue: letters,
            partition: letter?.partition,
            failure,
          },
        ],
      })
    })

    it('items move to the dead queue for every cause of death', async () => {
      const letters = await given.queue()
      const queue = await given.queue({
        deadQueue: letters,
        attemptsMax: 1,
        leaseTimeoutUs: minute,
        expireTimeoutUs: hour,
      })
      await produce(queue, newItems(3))
      const [a, b] = await lease(queue, 3)
      await declareDead(queue, [a?.id ?? ''])
      await giveBack(queue, b?.id)
      const [bAgain] = await lease(queue, 1)
      await giveBack(queue, bAgain?.id)
      await produce(queue, newItems(4).slice(3))
      await given.run({ op: 'advance', now: noon + minute + 1, countMax: 10 })
      await given.run({ op: 'advance', now: noon + hour + 1, countMax: 10 })
      const found = await list(letters)
      expect(found.map((letter) => [toText(letter.payload), letter.failure?.errorCode])).toEqual([
        ['item-0', 'http_410'],
        ['item-1', 'attempts'],
        ['item-2', 'attempts'],
        ['item-3', 'expired'],
      ])
      expect(await given.storage.readCounts({})).toMatchObject([
        { queue: letters, accepted: 4, waiting: 4 },
        { queue, accepted: 4, waiting: 0, leased: 0, deadLettered: 4, dropped: 0 },
      ])
    })

    it('a dead letter keeps up to 100 earlier failures, newest first', async () => {
      const letters = await given.queue()
      const queue = await given.queue({ deadQueue: letters })
      await produce(queue, newItems(1))
      const rounds = 103
      for (let round = 1; round <= rounds; round++) {
        const [item] = await lease(queue, 1, noon + round)
        const error = { message: `round ${round}` }
        const items = [{ id: item?.id ?? '', availableAt: null, isDead: round === rounds, error }]
        await given.run({ op: 'retry', queue, partition: 0, items, now: noon + round })
      }
      const [letter] = await list(letters)
      expect(letter?.failure?.message).toBe('round 103')
      expect(letter?.history.map(({ message }) => message)).toEqual(
        Array.from({ length: 100 }, (_, index) => `round ${rounds - 1 - index}`),
      )
    })

    it('a dead letter keeps its attempts and first failure', async () => {
      const letters = await given.queue()
      const queue = await given.queue({ deadQueue: letters, attemptsMax: 2 })
      const [rootId] = await produce(queue, newItems(1))
      for (const attempt of [1, 2, 3]) {
        const [item] = await lease(queue, 1, noon + attempt * minute)
        await giveBack(queue, item?.id, noon + attempt * minute)
      }
      const [letter] = await list(letters)
      expect(letter?.failure).toMatchObject({
        attempts: 3,
        firstFailedAt: noon + minute,
        lastFailedAt: noon + 3 * minute,
      })
      expect(letter?.origin?.createdAt).toBe(noon)
      // The id of the item changed with each retry; the source id is its last one.
      expect(letter?.sourceId).not.toBeNull()
      expect(rootId).toBeDefined()
    })

    it('items of many queues and partitions move at once', async () => {
      const letters = await given.queue({ partitions: 3 })
      const queues = [
        await given.queue({ deadQueue: letters, partitions: 5 }),
        await given.queue({ deadQueue: letters }),
      ] as const
      const ids: string[] = []
      for (const [queue, partition, count] of [
        [queues[0], 4, 300],
        [queues[0], 1, 20],
        [queues[1], 0, 300],
      ] as const) {
        ids.push(...(await produce(queue, newItems(count, `${queue}-${partition}`), partition)))
      }
      await given.run({ op: 'advance', now: noon + 30 * day, countMax: 10_000 })
      const found = await list(letters)
      expect(found.map((letter) => letter.sourceId).toSorted()).toEqual(ids.toSorted())
      expect(new Set(found.map((letter) => toText(letter.payload))).size).toBe(620)
    })
  })

  describe('receives an item once', () => {
    it('a move that is repeated after a crash keeps the existing letter', async () => {
      const letters = await given.queue({ partitions: 2 })
      const queue = await given.queue({ deadQueue: letters })
      const [id = ''] = await produce(queue, newItems(1))
      for (const partition of [0, 1]) {
        const there = { payload: bytes('was there'), sourceId: id, origin: anOrigin(), failure: aFailure() }
        await given.run({ op: 'import', queue: letters, partition, items: [there], now: noon })
      }
      const before = await list(letters)
      expect(before).toHaveLength(1)
      await lease(queue, 1)
      const settled = await declareDead(queue, [id])
      expect(settled).toMatchObject({
        isSettled: true,
        changes: [{ fromId: id, to: 'moved', queue: letters, id: before[0]?.id, partition: 0 }],
      })
      expect(await list(queue)).toEqual([])
      expect(await list(letters)).toEqual(before)
    })

    it('a second death of the same item changes nothing', async () => {
      const letters = await given.queue()
      const queue = await given.queue({ deadQueue: letters })
      const [id = ''] = await produce(queue, newItems(1))
      await lease(queue, 1)
      await declareDead(queue, [id])
      const refused = { isSettled: false, refused: [{ id, refusal: 'missing' }] }
      expect(await declareDead(queue, [id])).toEqual(refused)
      expect(await list(letters)).toHaveLength(1)
    })
  })

  describe('keeps its letters', () => {
    const importTo = async (queue: string, items: readonly ItemToImport[]) =>
      (await given.run({ op: 'import', queue, partition: 0, items, now: noon })).map((row) => row.id ?? '')
    const letter = { payload: bytes('letter'), origin: anOrigin(), failure: aFailure(), deadLetteredAt: noon }

    it('dead letters do not expire', async () => {
      const letters = await given.queue({ expireTimeoutUs: 1 })
      const queue = await given.queue({ deadQueue: letters })
      await produce(queue, newItems(1, 'moved', { expireDeadline: noon + 1 }))
      await given.run({ op: 'advance', now: noon + hour, countMax: 10 })
      await importTo(letters, [letter])
      expect(await given.storage.readNextDueAt()).toBeNull()
      expect((await given.run({ op: 'advance', now: noon + 10_000 * day, countMax: 10 })).changes).toEqual([])
      expect(await given.storage.readCounts({ queue: letters })).toMatchObject([{ waiting: 2 }])
    })

    it('a completed dead letter stays as done without a removal time', async () => {
      const letters = await given.queue({ doneRetentionUs: 0 })
      const [id = ''] = await importTo(letters, [letter])
      await lease(letters, 1)
      const settled = await given.run({
        op: 'complete',
        queue: letters,
        partition: 0,
        ids: [id],
        now: noon + 1,
      })
      expect(settled).toMatchObject({ changes: [{ to: 'done', id }] })
      expect(await given.storage.readNextDueAt()).toBeNull()
      expect((await given.run({ op: 'advance', now: noon + 10_000 * day, countMax: 10 })).changes).toEqual([])
      expect(await list(letters)).toMatchObject([
        { id, state: 'done', endedAt: noon + 1, deadLetteredAt: noon },
      ])
    })

    it('a dead letter that dies again stays dead in place', async () => {
      const letters = await given.queue({ attemptsMax: 1, leaseTimeoutUs: minute })
      await importTo(letters, [letter, letter])
      const [held] = await lease(letters, 2)
      const settled = await declareDead(letters, [held?.id ?? ''])
      expect(settled).toMatchObject({ changes: [{ to: 'dead', cause: 'declared-dead', id: held?.id }] })
      const { changes } = await given.run({ op: 'advance', now: noon + hour, countMax: 10 })
      expect(changes).toMatchObject([{ to: 'dead', cause: 'attempts', queue: letters }])
      expect(await list(letters)).toMatchObject([
        { state: 'dead', failure: { errorCode: 'http_410' } },
        { state: 'dead', failure: { errorCode: 'attempts' } },
      ])
      expect(await given.storage.readCounts({ queue: letters })).toMatchObject([{ dead: 2, dropped: 0 }])
    })

    it('a dead letter retried above the attempt limit stays dead in place', async () => {
      const letters = await given.queue({ attemptsMax: 1 })
      await importTo(letters, [letter])
      const [held] = await lease(letters, 1)
      expect(await giveBack(letters, held?.id)).toMatchObject({ changes: [{ to: 'waiting' }] })
      const [again] = await lease(letters, 1)
      expect(await giveBack(letters, again?.id)).toMatchObject({
        changes: [{ to: 'dead', cause: 'attempts', id: again?.id }],
      })
      expect(await list(letters)).toMatchObject([{ state: 'dead', attempts: 2, rootId: held?.id }])
    })

    it('a retried dead letter keeps its root id', async () => {
      const letters = await given.queue()
      const [id = ''] = await importTo(letters, [letter])
      await lease(letters, 1)
      await giveBack(letters, id, noon + 1)
      expect(await list(letters)).toMatchObject([
        { rootId: id, origin: anOrigin(), deadLetteredAt: noon, attempts: 1 },
      ])
    })
  })

  it('without a dead queue, dead items are dropped and counted, or kept in place', async () => {
    const drops = await given.queue()
    const keeps = await given.queue({ onDead: 'keep' })
    for (const queue of [drops, keeps]) {
      const ids = await produce(queue, newItems(1))
      await lease(queue, 1)
      await declareDead(queue, ids, noon + 1)
    }
    expect(await list(drops)).toEqual([])
    expect(await list(keeps)).toMatchObject([
      {
        state: 'dead',
        endedAt: noon + 1,
        deadLetteredAt: noon + 1,
        origin: null,
        failure: { errorCode: 'http_410' },
      },
    ])
    expect(await given.storage.readCounts({})).toMatchObject([
      { queue: drops, dropped: 1, dead: 0 },
      { queue: keeps, dropped: 0, dead: 1 },
    ])
  })
})

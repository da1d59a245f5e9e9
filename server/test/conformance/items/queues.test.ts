import { describe, expect, it } from 'vitest'
import { buildQueue, defaultPolicy, type NewQueue, type QueuePolicy } from '../../../src/core/items/queue.ts'
import { aNewItem, bytes, hour, minute, newItems, noon, second } from '../../make.ts'
import { putNamespace } from '../support/change-access.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { describeStores } from '../support/test-stores.ts'

const everyPolicy: QueuePolicy = {
  leaseTimeoutUs: 90 * second + 1,
  expireTimeoutUs: 7 * hour + 1,
  attemptsMax: 65_536,
  deadQueue: null,
  onDead: 'keep',
  retry: { kind: 'list', delaysUs: [1, 2_000_000, 3], jitter: 0.25 },
  doneRetentionUs: 11 * minute + 7,
  isPaused: true,
  letterClass: 'financial',
  redrive: {
    mode: 'auto',
    redrivesMax: 9,
    backoff: { kind: 'exponential', delayUsMin: 1, delayUsMax: 9_007_199_254_740_991, jitter: 0.5 },
  },
  reference: 'the “orders” of shop 7 — 注文 🧾',
}

describeStores('queues', (given) => {
  const create = async (queue: NewQueue, now = noon) => given.run({ op: 'create-queue', queue, now })

  describe('create', () => {
    it('creating a queue applies the default policy and stores what it returns', async () => {
      const queue = await create({ name: 'plain' })
      expect(queue).toEqual(buildQueue({ name: 'plain' }, noon))
      expect(await given.storage.getQueue('plain')).toEqual(queue)
      expect(await given.storage.listQueues({ countMax: 10 })).toEqual([queue])
    })

    it('creating a queue keeps every part of its policy', async () => {
      await create({ name: 'letters' })
      await putNamespace(given.storage, 'shop')
      const spec = { name: 'full', namespace: 'shop', partitions: 7, ...everyPolicy, deadQueue: 'letters' }
      expect(await create(spec)).toEqual(buildQueue(spec, noon))
      expect(await given.storage.getQueue('full')).toEqual(buildQueue(spec, noon))
    })

    it('creating a queue with an existing name is refused and changes nothing', async () => {
      const queue = await create({ name: 'taken', reference: 'first' })
      const error = await expectRefusal(create({ name: 'taken', reference: 'second' }), 'QUEUE_EXISTS')
      expect(error.message).toContain('taken')
      expect(await given.storage.getQueue('taken')).toEqual(queue)
    })

    it('creating a queue is refused if its dead queue is missing, itself, or has a dead queue', async () => {
      await expectRefusal(create({ name: 'a', deadQueue: 'nowhere' }), 'DEAD_QUEUE_INVALID')
      await expectRefusal(create({ name: 'a', deadQueue: 'a' }), 'DEAD_QUEUE_INVALID')
      await create({ name: 'last' })
      await create({ name: 'middle', deadQueue: 'last' })
      await expectRefusal(create({ name: 'a', deadQueue: 'middle' }), 'DEAD_QUEUE_INVALID')
      expect(await given.storage.getQueue('a')).toBeNull()
    })

    it('a queue and its dead queue can be created in one write', async () => {
      const [, queue] = await given.storage.write([
        { op: 'create-queue', queue: { name: 'letters' }, now: noon },
        { op: 'create-queue', queue: { name: 'work', deadQueue: 'letters' }, now: noon },
        { op: 'produce', queue: 'work', partition: 0, items: [aNewItem()], now: noon },
      ])
      expect(queue.deadQueue).toBe('letters')
    })

    it('a new queue has zero counts in every partition', async () => {
      const name = await given.queue({ partitions: 3 })
      const rows = await given.storage.readCounts({ queue: name })
      expect(rows.map((row) => row.partition)).toEqual([0, 1, 2])
      expect(rows[2]).toEqual({
        queue: name,
        partition: 2,
        waiting: 0,
        scheduled: 0,
        leased: 0,
        done: 0,
        dead: 0,
        discarded: 0,
        accepted: 0,
        completed: 0,
        deadLettered: 0,
        dropped: 0,
        deleted: 0,
        forgotten: 0,
        archived: 0,
        purged: 0,
        createdAtMean: null,
        leaseDeadlineMean: null,
      })
    })
  })

  describe('update', () => {
    const update = async (name: string, changes: Partial<QueuePolicy>, now = noon + hour) =>
      given.run({ op: 'update-queue', name, changes, now })

    it('updating a queue changes only the named fields and the update time', async () => {
      const before = await create({ name: 'q', leaseTimeoutUs: 5 * second, reference: 'old', partitions: 2 })
      const after = { ...before, reference: 'new', updatedAt: noon + hour }
      expect(await update('q', { reference: 'new' })).toEqual(after)
      expect(await given.storage.getQueue('q')).toEqual(after)
    })

    it('updating a queue can change every part of its policy', async () => {
      const before = await create({ name: 'q' })
      // The queue has an auto policy from now on, so its letters must be planned.
      const changed = { ...before, ...everyPolicy, updatedAt: noon + hour, replannedUntil: null }
      expect(await update('q', everyPolicy)).toEqual(changed)
      const back = { ...before, updatedAt: noon + 2, replannedUntil: null }
      expect(await update('q', defaultPolicy, noon + 2)).toEqual(back)
    })

    it('updating an unknown queue is refused', async () => {
      const error = await expectRefusal(update('nowhere', { reference: '' }), 'QUEUE_NOT_FOUND')
      expect(error.message).toContain('nowhere')
    })

    it('updating a queue is refused if its dead queue is missing, itself, or has a dead queue', async () => {
      await create({ name: 'last' })
      await create({ name: 'middle', deadQueue: 'last' })
      const before = await create({ name: 'q' })
      for (const deadQueue of ['nowhere', 'q', 'middle']) {
        await expectRefusal(update('q', { deadQueue }), 'DEAD_QUEUE_INVALID')
      }
      expect(await given.storage.getQueue('q')).toEqual(before)
    })

    it('a dead queue of another queue cannot get its own dead queue', async () => {
      await create({ name: 'letters' })
      await create({ name: 'work', deadQueue: 'letters' })
      await create({ name: 'other' })
      await expectRefusal(update('letters', { deadQueue: 'other' }), 'DEAD_QUEUE_INVALID')
      await update('work', { deadQueue: null })
      expect((await update('letters', { deadQueue: 'other' })).deadQueue).toBe('other')
    })

    it('a queue that has or had letters cannot get a dead queue', async () => {
      await create({ name: 'work' })
      await create({ name: 'other' })
      await createLetterActions(given).capture('work', [aLetter()])
      await expectRefusal(update('work', { deadQueue: 'other' }), 'DEAD_QUEUE_INVALID')
      const clear = {
        op: 'clear',
        isWaiting: true,
        isScheduled: false,
        isLeased: false,
        countMax: 9,
      } as const
      expect(await given.run({ ...clear, queue: 'work' })).toMatchObject({ removed: 0, discarded: 1 })
      const error = await expectRefusal(update('work', { deadQueue: 'other' }), 'DEAD_QUEUE_INVALID')
      expect(error.message).toContain('delete it and create it again')
      expect((await update('work', { reference: 'else' })).reference).toBe('else')
    })

    it('a queue with a dead queue accepts no letters, even if an earlier queue of that name did', async () => {
      await create({ name: 'dead' })
      await create({ name: 'work' })
      await createLetterActions(given).capture('work', [aLetter()])
      await given.run({ op: 'delete-queue', name: 'work', isForced: true })
      await create({ name: 'work', deadQueue: 'dead' })
      const error = await expectRefusal(
        createLetterActions(given).capture('work', [aLetter()]),
        'DEAD_QUEUE_INVALID',
      )
      expect(error.message).toContain('its dead queue, dead')
      // Import a leased letter: it takes another code path than new letters.
      const lease = { holder: 'w', deadline: noon + minute }
      const leased = {
        op: 'import',
        queue: 'work',
        partition: 0,
        now: noon,
        items: [{ ...aLetter(), lease }],
      } as const
      await expectRefusal(given.run(leased), 'DEAD_QUEUE_INVALID')
      expect((await given.storage.readCounts({ queue: 'work' })).map(({ accepted }) => accepted)).toEqual([0])
    })

    it('a policy change applies immediately to new leases and existing items', async () => {
      await create({ name: 'letters' })
      await create({ name: 'q' })
      await given.run({ op: 'produce', queue: 'q', partition: 0, items: newItems(2), now: noon })
      const [, leased] = await given.storage.write([
        {
          op: 'update-queue',
          name: 'q',
          changes: { leaseTimeoutUs: 7, deadQueue: 'letters', attemptsMax: 1 },
          now: noon,
        },
        { op: 'lease', queue: 'q', partition: 0, holders: ['w', 'w'], now: noon },
      ])
      expect(leased.map((item) => item.lease.deadline)).toEqual([noon + 7, noon + 7])
      const { changes } = await given.run({ op: 'advance', now: noon + 8, countMax: 10 })
      expect(changes.map((change) => [change.to, change.queue])).toEqual([
        ['moved', 'letters'],
        ['moved', 'letters'],
      ])
    })
  })

  describe('delete', () => {
    it('deleting a queue removes its items, counts and archived items', async () => {
      const create = {
        op: 'create-queue',
        queue: { name: 'q', onDead: 'keep', doneRetentionUs: hour },
        now: noon,
      } as const
      await given.storage.write([create])
      await given.run({ op: 'produce', queue: 'q', partition: 0, items: newItems(3), now: noon })
      const [first] = await given.run({ op: 'lease', queue: 'q', partition: 0, holders: ['w'], now: noon })
      const ids = [first?.id ?? '']
      await given.run({ op: 'complete', queue: 'q', partition: 0, ids, now: noon })
      await given.run({ op: 'archive', queue: 'q', endedBefore: noon + 1, countMax: 10, now: noon + 1 })
      expect(await given.storage.listArchive({ queue: 'q', countMax: 10 })).toHaveLength(1)

      await given.run({ op: 'delete-queue', name: 'q' })
      expect(await given.storage.getQueue('q')).toBeNull()
      expect(await given.storage.readCounts({})).toEqual([])
      expect(await given.storage.readNextDueAt()).toBeNull()

      await given.storage.write([create])
      expect(await given.storage.listItems({ queue: 'q', countMax: 10 })).toEqual([])
      expect(await given.storage.listArchive({ queue: 'q', countMax: 10 })).toEqual([])
      expect(await given.storage.readCounts({ queue: 'q' })).toMatchObject([{ accepted: 0, archived: 0 }])
    })

    it('deleting a queue reports the number of removed items in any state', async () => {
      const queue = await given.queue()
      const items = [...newItems(3), aNewItem({ availableAt: noon + hour })]
      await given.run({ op: 'produce', queue, partition: 0, items, now: noon })
      await given.run({ op: 'lease', queue, partition: 0, holders: ['w'], now: noon })
      expect(await given.run({ op: 'delete-queue', name: queue })).toEqual({ removed: 4, isMore: false })
    })

    it('deleting a queue frees the source ids of its items', async () => {
      const item = { payload: bytes('x'), sourceId: 'once' }
      await create({ name: 'q' })
      await given.run({ op: 'import', queue: 'q', partition: 0, items: [item], now: noon })
      await given.run({ op: 'delete-queue', name: 'q' })
      await create({ name: 'q' })
      const [imported] = await given.run({ op: 'import', queue: 'q', partition: 0, items: [item], now: noon })
      expect(imported?.id).not.toBeNull()
    })

    it('deleting a queue is refused while it is the dead queue of another', async () => {
      await create({ name: 'letters' })
      await create({ name: 'work', deadQueue: 'letters' })
      await expectRefusal(given.run({ op: 'delete-queue', name: 'letters' }), 'QUEUE_IN_USE')
      expect(await given.storage.getQueue('letters')).not.toBeNull()
      await given.storage.write([
        { op: 'delete-queue', name: 'work' },
        { op: 'delete-queue', name: 'letters' },
      ])
      expect(await given.storage.listQueues({ countMax: 10 })).toEqual([])
    })

    it('deleting an unknown queue is refused', async () => {
      await expectRefusal(given.run({ op: 'delete-queue', name: 'nowhere' }), 'QUEUE_NOT_FOUND')
    })

    it('deleting a queue does not touch other queues', async () => {
      const [gone, stays] = [await given.queue(), await given.queue()]
      for (const queue of [gone, stays]) {
        await given.run({ op: 'produce', queue, partition: 0, items: newItems(5), now: noon })
      }
      await given.run({ op: 'delete-queue', name: gone })
      expect(await given.storage.listItems({ queue: stays, countMax: 10 })).toHaveLength(5)
    })
  })

  describe('changed times', () => {
    const change = (changes: Partial<QueuePolicy>) =>
      given.run({ op: 'update-queue', name: 'q', changes, now: noon })

    it('a lease time longer than the expire time is refused, whichever of them changes', async () => {
      await create({ name: 'q', leaseTimeoutUs: minute, expireTimeoutUs: 24 * hour })
      const changes = [change({ leaseTimeoutUs: 2 * hour }), change({ expireTimeoutUs: hour })]
      const outcomes = await Promise.allSettled(changes)
      expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
      await expectRefusal(changes[outcomes[0]?.status === 'rejected' ? 0 : 1] as never, 'LEASE_TOO_LONG')
      const { leaseTimeoutUs, expireTimeoutUs } = (await given.storage.getQueue('q')) as QueuePolicy
      expect(leaseTimeoutUs).toBeLessThanOrEqual(expireTimeoutUs)
    })

    it('a refused policy change changes nothing', async () => {
      await create({ name: 'q', leaseTimeoutUs: minute, expireTimeoutUs: hour })
      await expectRefusal(change({ leaseTimeoutUs: hour + 1, reference: 'new' }), 'LEASE_TOO_LONG')
      expect(await given.storage.getQueue('q')).toMatchObject({ leaseTimeoutUs: minute, reference: '' })
      expect(await change({ leaseTimeoutUs: 2 * hour, expireTimeoutUs: 2 * hour })).toMatchObject({
        leaseTimeoutUs: 2 * hour,
      })
    })
  })

  describe('list', () => {
    // Ordered by UTF-8 bytes, not by a language and not by UTF-16 units, where the emoji comes first.
    const inByteOrder = ['A-1', 'A_1', 'B', 'Z', 'a', 'a.b', 'aB', 'b', 'Ä', 'ä', '注文', '\u{FF5E}', '🧾']

    it('queues are listed in byte order of their names', async () => {
      for (const name of inByteOrder.toReversed()) await create({ name })
      const listed = await given.storage.listQueues({ countMax: 100 })
      expect(listed.map((queue) => queue.name)).toEqual(inByteOrder)
    })

    it('the list starts at the given name or the next existing one', async () => {
      for (const name of inByteOrder) await create({ name })
      const namesFrom = async (from: string, countMax = 2) =>
        (await given.storage.listQueues({ from, countMax })).map((queue) => queue.name)
      expect(await namesFrom('a')).toEqual(['a', 'a.b'])
      expect(await namesFrom('C')).toEqual(['Z', 'a'])
      expect(await namesFrom('\u{FF5F}')).toEqual(['🧾'])
      expect(await namesFrom('🧾🧾')).toEqual([])
      expect(await namesFrom('', 100)).toEqual(inByteOrder)
    })

    it('the list can be limited to a namespace', async () => {
      await putNamespace(given.storage, 'shop')
      for (const name of ['a', 'c', 'e']) await create({ name, namespace: 'shop' })
      for (const name of ['b', 'd']) await create({ name })
      const names = async (query: { namespace?: string; from?: string }) =>
        (await given.storage.listQueues({ ...query, countMax: 2 })).map((queue) => queue.name)
      expect(await names({ namespace: 'shop' })).toEqual(['a', 'c'])
      expect(await names({ namespace: 'shop', from: 'b' })).toEqual(['c', 'e'])
      expect(await names({ namespace: '_system' })).toEqual(['b', 'd'])
      expect(await names({ namespace: 'other' })).toEqual([])
      expect(await names({})).toEqual(['a', 'b'])
    })
  })

  it('an unknown queue is null', async () => {
    expect(await given.storage.getQueue('nowhere')).toBeNull()
  })
})

/** Deleting a queue in steps: one of many items must not block the other writes until all are deleted. */
import { beforeEach, expect, it } from 'vitest'
import type { DeleteQueue } from '../../../src/storage/contract/queues.ts'
import { hour, newItems, noon } from '../../make.ts'
import { expectConsistentStore } from '../support/expect-consistent-store.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { aLetter, createLetterActions, type LetterActions } from '../support/letter-actions.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('deleting a queue in steps', (given) => {
  let actions: LetterActions
  beforeEach(() => {
    actions = createLetterActions(given)
  })

  /** A dead queue with 6 open letters, one of them in a redrive, and 3 archived ones. */
  const createLetters = async () => {
    const { work, letters } = await actions.createQueues()
    const capture = (count: number) =>
      actions.capture(
        letters,
        Array.from({ length: count }, () => aLetter()),
      )
    await actions.discard(await capture(3))
    await given.run({ op: 'archive', queue: letters, endedBefore: noon + 1, countMax: 9, now: noon })
    const [redriven = ''] = await capture(6)
    const copy = await actions.redriveOne(redriven, noon, work)
    await given.run({ op: 'update-queue', name: work, changes: { deadQueue: null }, now: noon })
    return { work, letters, copy }
  }
  const step = (name: string, more: Partial<DeleteQueue> = {}) =>
    given.run({ op: 'delete-queue', name, countMax: 2, isForced: true, ...more })

  it('each step deletes a limited number of items, counts them, and the queue is deleted last', async () => {
    const { work, letters, copy } = await createLetters()
    const audit = {
      at: noon,
      actor: 'ann',
      action: 'queue.delete',
      reason: 'old',
      requestId: 'r',
      details: {},
    }
    const removed: number[] = []
    for (let isMore = true; isMore; ) {
      const done = await step(letters, { audit })
      removed.push(done.removed)
      isMore = done.isMore
      await expectConsistentStore(given.storage)
      expect((await given.storage.getQueue(letters)) === null).toBe(!isMore)
    }
    // Three steps for the items, one for two archived letters, and the last one for what is left.
    expect(removed).toEqual([2, 2, 2, 0, 0])
    const rows = await given.storage.listAudit({ action: 'queue.delete', countMax: 9 })
    expect(rows.map(({ details }) => details.isMore === true)).toEqual([false, true, true, true, true])
    // The copy of the redriven letter is an ordinary item now.
    await actions.complete(await actions.leaseOne({ queue: work, partition: copy.partition }))
  })

  it('a deletion that ended between two steps leaves a queue that works, and can be repeated', async () => {
    const queue = await given.queue()
    await given.run({ op: 'produce', queue, partition: 0, items: newItems(5), now: noon })
    expect(await step(queue, { isForced: false })).toEqual({ removed: 2, isMore: true })
    await given.run({ op: 'produce', queue, partition: 0, items: newItems(1), now: noon })
    const leased = await given.run({ op: 'lease', queue, partition: 0, holders: ['w'], now: noon })
    expect(leased).toHaveLength(1)
    while ((await step(queue)).isMore) await expectConsistentStore(given.storage)
    expect(await given.storage.getQueue(queue)).toBeNull()
    expect(await given.storage.readNextDueAt()).toBeNull()
  })

  it('no step deletes open letters of a queue unless it is forced', async () => {
    const { letters } = await createLetters()
    await expectRefusal(step(letters, { isForced: false }), 'QUEUE_HOLDS_LETTERS')
    expect(await given.storage.listItems({ queue: letters, countMax: 9 })).toHaveLength(6)
  })

  it('a step does not delete a queue of the same name that was created since', async () => {
    const queue = await given.queue()
    const createdAt = (await given.storage.getQueue(queue))?.createdAt ?? 0
    await step(queue)
    await given.run({ op: 'create-queue', queue: { name: queue }, now: noon + hour })
    await expectRefusal(step(queue, { createdAt }), 'QUEUE_NOT_FOUND')
    expect(await given.storage.getQueue(queue)).not.toBeNull()
  })
})

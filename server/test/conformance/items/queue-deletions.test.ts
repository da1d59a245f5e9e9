/** A deletion of a queue that ended half-way is finished by a pass of any server. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createEngine } from '../../../src/engine/create-engine.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import { minute, newItems, noon, second } from '../../make.ts'
import { expectConsistentStore } from '../support/expect-consistent-store.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('deletions of queues that are not finished', (given) => {
  let engine: Engine
  let now = noon
  beforeEach(() => {
    now = noon
    engine = createEngine(given.storage, { clock: { now: () => now }, isTicking: false })
  })
  afterEach(() => engine.close())

  const attribution = { actor: 'ann', reason: 'old', requestId: 'r', address: '192.0.2.1' }
  /** The first step of a deletion, as if the server had been killed after it. */
  const begin = async (name: string, isForced: boolean) => {
    const createdAt = (await given.storage.getQueue(name))?.createdAt ?? 0
    const audit = { at: now, action: 'queue.delete', details: {}, ...attribution }
    const pending = { at: now, attribution }
    const step = { op: 'delete-queue', name, isForced, countMax: 2, pending, createdAt, audit } as const
    expect(await given.run(step)).toMatchObject({ isMore: true })
    return createdAt
  }

  it('a deletion without progress for 15 s is finished, with the audit rows of its caller', async () => {
    const letters = await given.queue()
    const actions = createLetterActions(given)
    await actions.capture(
      letters,
      Array.from({ length: 5 }, () => aLetter()),
    )
    const createdAt = await begin(letters, true)
    expect(await given.storage.listQueueDeletions(10)).toEqual([
      { name: letters, createdAt, at: noon, isForced: true, attribution },
    ])

    now = noon + 14 * second
    await engine.finishQueueDeletions()
    expect(await given.storage.getQueue(letters)).not.toBeNull()

    now = noon + 15 * second
    await engine.finishQueueDeletions()
    expect(await given.storage.getQueue(letters)).toBeNull()
    expect(await given.storage.listQueueDeletions(10)).toEqual([])
    await expectConsistentStore(given.storage)
    const rows = await given.storage.listAudit({ action: 'queue.delete', countMax: 9 })
    expect(rows).toMatchObject([
      { actor: 'ann', reason: 'old', requestId: 'r', address: '192.0.2.1', target: letters, at: now },
      { actor: 'ann', at: noon },
    ])
  })

  it('a deletion that is refused is forgotten, and does not happen when the reason is gone', async () => {
    const queue = await given.queue()
    await given.run({ op: 'produce', queue, partition: 0, items: newItems(5), now })
    await begin(queue, true)
    const user = await given.queue({ deadQueue: queue })
    now += minute
    await engine.finishQueueDeletions()
    expect(await given.storage.listQueueDeletions(10)).toEqual([])

    await given.run({ op: 'update-queue', name: user, changes: { deadQueue: null }, now })
    now += minute
    await engine.finishQueueDeletions()
    expect(await given.storage.listItems({ queue, countMax: 9 })).toHaveLength(3)
  })

  it('a call that is repeated finishes the deletion itself, and a new queue of the name stays', async () => {
    const queue = await given.queue()
    await given.run({ op: 'produce', queue, partition: 0, items: newItems(5), now })
    await begin(queue, false)
    await engine.deleteQueue(queue, attribution)
    expect(await given.storage.listQueueDeletions(10)).toEqual([])
    now += minute
    await engine.createQueue({ name: queue })
    await engine.finishQueueDeletions()
    expect(await given.storage.getQueue(queue)).not.toBeNull()
  })

  it('two passes at the same time finish the deletion once', async () => {
    const queue = await given.queue()
    await given.run({ op: 'produce', queue, partition: 0, items: newItems(9), now })
    await begin(queue, true)
    now += minute
    const errors: unknown[] = []
    const other = createEngine(given.storage, {
      clock: { now: () => now },
      isTicking: false,
      onError: (error) => errors.push(error),
    })
    await Promise.all([engine.finishQueueDeletions(), other.finishQueueDeletions()])
    await other.close()
    expect(errors).toEqual([])
    expect(await given.storage.getQueue(queue)).toBeNull()
    await expectConsistentStore(given.storage)
  })
})

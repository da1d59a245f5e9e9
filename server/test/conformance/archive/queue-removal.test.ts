/**
 * Requests that remove items from a queue discard its open letters, so that they can be restored. Only a
 * forced deletion of the whole queue removes them for good. Each request is audited with the number of
 * letters.
 */
import { expect, it } from 'vitest'
import type { AuditContext } from '../../../src/storage/contract/audit.ts'
import type { RemoveResult } from '../../../src/storage/contract/items.ts'
import { day, newItems, noon } from '../../make.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { createLetterActions } from '../support/letter-actions.ts'
import { describeStores } from '../support/test-stores.ts'

const createAudit = (action: string): AuditContext => ({
  at: noon,
  actor: 'ann',
  action,
  reason: 'spring cleaning',
  requestId: 'r1',
  details: {},
})

describeStores('letters of a removed queue', (given) => {
  const actions = createLetterActions(given)
  const details = async (target: string) =>
    (await given.storage.listAudit({ target, countMax: 9 })).map(({ action, details }) => [action, details])
  /** Letters: two waiting, one in redrive, one DEAD, one discarded, one archived. */
  const someOfEach = async (letterClass: string) => {
    const { work, letters } = await actions.createQueues({}, { letterClass })
    const ids = await actions.produceDead(work, newItems(6))
    const [held] = await given.run({ op: 'lease', queue: letters, partition: 0, holders: ['w'], now: noon })
    if (held !== undefined) await actions.declareDead(held)
    const open = ids.filter((id) => id !== held?.rootId)
    await actions.redriveOne(open[0] ?? '')
    await actions.discard(open.slice(1, 2))
    const archive = { op: 'archive', queue: letters, states: ['discarded'], endedBefore: noon + 1 } as const
    await given.run({ ...archive, countMax: 9, now: noon })
    await actions.discard(open.slice(2, 3))
    await given.run({ op: 'update-queue', name: work, changes: { deadQueue: null }, now: noon })
    return { work, letters, open: open.slice(3), redriven: open[0] ?? '', dead: held?.rootId ?? '' }
  }
  const clearing = {
    op: 'clear',
    isWaiting: true,
    isScheduled: true,
    isLeased: false,
    countMax: 100,
  } as const

  const restore = async (letterIds: readonly string[]) =>
    given.run({ op: 'restore', letterIds, now: noon + 2 })
  const statesOf = async (letterIds: readonly string[]) =>
    (await given.storage.getLetters(letterIds)).map(({ state }) => state)
  const verified = async () => expect(await given.storage.verify()).toEqual([])

  it.each(['standard', 'financial'])(
    'a clear discards the open letters of class %s and a restore brings them back',
    async (letterClass) => {
      const { letters, open } = await someOfEach(letterClass)
      const audit = createAudit('queue.clear')
      const clear = { ...clearing, queue: letters, isForced: true, now: noon + 1, audit }
      const before = await given.storage.getLetters(open)
      expect(await given.run(clear)).toEqual({ removed: 0, discarded: 2, next: null })
      expect(await given.run(clear)).toEqual({ removed: 0, discarded: 0, next: null })
      const after = await given.storage.getLetters(open)
      for (const letter of after) {
        expect(letter).toMatchObject({ state: 'discarded', endedAt: noon + 1, updatedAt: noon + 1 })
        expect(letter.letter?.discardReason).toBe('spring cleaning')
      }
      expect(await given.storage.readCounts({ queue: letters })).toMatchObject([{ waiting: 0, deleted: 0 }])
      await verified()
      expect(await restore(open)).toMatchObject([{ isRestored: true }, { isRestored: true }])
      const restored = await given.storage.getLetters(open)
      expect(restored.map(({ state, payload, failure, id }) => ({ state, payload, failure, id }))).toEqual(
        before.map(({ payload, failure, id }) => ({ state: 'waiting', payload, failure, id })),
      )
      await verified()
    },
  )

  it('a clear writes an audit row for the queue and one for each discarded letter', async () => {
    const { letters, open } = await someOfEach('standard')
    await given.run({ op: 'produce', queue: letters, partition: 0, items: newItems(3), now: noon })
    const clear = { ...clearing, queue: letters, audit: createAudit('queue.clear') }
    expect(await given.run(clear)).toEqual({ removed: 3, discarded: 2, next: null })
    expect(await details(letters)).toEqual([['queue.clear', { removed: 3, discarded: { waiting: 2 } }]])
    for (const id of open) {
      const [row] = await given.storage.listAudit({ target: id, countMax: 1 })
      const by = { by: 'queue.clear', queue: letters, letters: 2 }
      expect(row).toMatchObject({ action: 'letter.discard', actor: 'ann', reason: 'spring cleaning' })
      expect(row?.details).toEqual(by)
    }
  })

  it('a clear of leased items discards letters that a consumer holds and keeps letters in redrive', async () => {
    const { letters, open, redriven } = await someOfEach('standard')
    const held = await actions.leaseOne({ queue: letters, partition: 0 })
    const clear = { ...clearing, queue: letters, isWaiting: false, isLeased: true, isForced: true }
    expect(await given.run({ ...clear, audit: createAudit('queue.clear') })).toEqual({
      removed: 0,
      discarded: 1,
      next: null,
    })
    expect(await statesOf([held.rootId, redriven])).toEqual(['discarded', 'leased'])
    expect(await details(letters)).toEqual([
      ['queue.clear', { removed: 0, discarded: { leased: 1 }, kept: 1 }],
    ])
    expect(open).toContain(held.rootId)
    // The consumer finds out that it no longer holds the letter.
    expect(await actions.complete(held)).toMatchObject({ isSettled: false })
    await verified()
  })

  it('a clear in small steps passes letters in redrive and ends', async () => {
    const { letters, open, redriven } = await someOfEach('standard')
    const clear = { ...clearing, queue: letters, isLeased: true, isForced: true, countMax: 1 }
    let [steps, discarded] = [0, 0]
    for (let after: string | null = ''; after !== null && steps < 20; steps++) {
      const done: RemoveResult = await given.run({ ...clear, after })
      discarded += done.discarded
      after = done.next
    }
    expect({ discarded, isEnded: steps < 20 }).toEqual({ discarded: 2, isEnded: true })
    expect(await statesOf([...open, redriven])).toEqual(['discarded', 'discarded', 'leased'])
  })

  it('a delete by id discards open letters, and a repeated delete keeps them', async () => {
    const { letters, open, dead } = await someOfEach('standard')
    const ids = ['0'.repeat(27), ...open, dead]
    const audit = createAudit('items.delete')
    const command = { op: 'delete', queue: letters, partition: 0, ids, now: noon + 1, audit } as const
    expect(await given.run(command)).toEqual({ removed: 0, discarded: 3, next: null })
    expect(await given.run(command)).toEqual({ removed: 0, discarded: 0, next: null })
    expect(await details(letters)).toEqual([
      ['items.delete', { ids: [...open, dead].toSorted(), removed: 0, discarded: { waiting: 2, dead: 1 } }],
    ])
    await verified()
    await restore([...open, dead])
    expect(await statesOf([...open, dead])).toEqual(['waiting', 'waiting', 'dead'])
  })

  it('a delete by id removes resolved letters', async () => {
    const { work, letters } = await actions.createQueues()
    const [letterId = ''] = await actions.produceDead(work, newItems(1))
    await actions.complete(await actions.leaseOne({ queue: letters, partition: 0 }))
    const [letter] = await given.storage.getLetters([letterId])
    const ids = [letter?.id ?? '']
    const command = {
      op: 'delete',
      queue: letters,
      partition: 0,
      ids,
      audit: createAudit('items.delete'),
    } as const
    expect(await given.run(command)).toEqual({ removed: 1, discarded: 0, next: null })
    expect(await details(letters)).toEqual([['items.delete', { ids, removed: 1, letters: { done: 1 } }]])
  })

  it('a delete that names a letter in redrive is refused and changes nothing', async () => {
    const { letters, open, redriven } = await someOfEach('standard')
    const ids = [...open, redriven]
    const command = { op: 'delete', queue: letters, partition: 0, ids } as const
    await expectRefusal(given.run(command), 'LETTER_NOT_DISCARDABLE')
    expect(await statesOf(ids)).toEqual(['waiting', 'waiting', 'leased'])
    await verified()
  })

  it.each(['standard', 'financial'])(
    'a queue of class %s with open letters is deleted only with force, and the audit row counts them',
    async (letterClass) => {
      const { letters } = await someOfEach(letterClass)
      const deleting = { op: 'delete-queue', name: letters, audit: createAudit('queue.delete') } as const
      await expectRefusal(given.run(deleting), 'QUEUE_HOLDS_LETTERS')
      await expectRefusal(given.run({ ...deleting, isForced: false }), 'QUEUE_HOLDS_LETTERS')
      await given.run({ ...clearing, queue: letters, isForced: true })
      // A letter in redrive and a DEAD letter are left.
      await expectRefusal(given.run(deleting), 'QUEUE_HOLDS_LETTERS')
      expect(await details(letters)).toEqual([])
      expect(await given.run({ ...deleting, isForced: true })).toEqual({ removed: 5, isMore: false })
      const counted = { leased: 1, dead: 1, discarded: 3 }
      expect(await details(letters)).toEqual([
        ['queue.delete', { removed: 5, letters: counted, archived: 1 }],
      ])
    },
  )

  it('a queue whose letters have all ended is deleted without force', async () => {
    const { work, letters } = await actions.createQueues()
    await actions.discard(await actions.produceDead(work, newItems(2)))
    await given.run({ op: 'delete-queue', name: work })
    const deleting = { op: 'delete-queue', name: letters, audit: createAudit('queue.delete') } as const
    expect(await given.run(deleting)).toEqual({ removed: 2, isMore: false })
    expect(await details(letters)).toEqual([['queue.delete', { removed: 2, letters: { discarded: 2 } }]])
    const ordinary = await given.queue()
    await given.run({ op: 'delete-queue', name: ordinary, audit: createAudit('queue.delete') })
    expect(await details(ordinary)).toEqual([['queue.delete', { removed: 0 }]])
  })

  it('a clear of a financial dead queue needs force', async () => {
    const { letters } = await someOfEach('financial')
    const clear = { ...clearing, queue: letters, audit: createAudit('queue.clear') }
    await expectRefusal(given.run(clear), 'QUEUE_HOLDS_LETTERS')
    expect(await details(letters)).toEqual([])
    expect(await given.run({ ...clear, isForced: true })).toMatchObject({ discarded: 2, next: null })
    expect(await given.run(clear)).toMatchObject({ discarded: 0, next: null })
  })

  it('the items of a queue of class financial that are no letters are cleared without force', async () => {
    const letters = await given.queue({ letterClass: 'financial' })
    await given.run({ op: 'produce', queue: letters, partition: 0, items: newItems(2), now: noon })
    expect(await given.run({ ...clearing, queue: letters })).toMatchObject({ removed: 2, next: null })
    expect(await given.run({ op: 'delete-queue', name: letters })).toEqual({ removed: 0, isMore: false })
  })

  it('changing the settings of a dead queue removes no letter', async () => {
    const { letters, open, dead, redriven } = await someOfEach('standard')
    const settings = {
      attemptsMax: 1,
      expireTimeoutUs: 2,
      leaseTimeoutUs: 1,
      onDead: 'delete',
      doneRetentionUs: 0,
    } as const
    await given.run({ op: 'update-queue', name: letters, changes: settings, now: noon })
    const held = await actions.leaseOne({ queue: letters, partition: 0 })
    await given.run({ op: 'advance', now: noon + 400 * day, countMax: 100 })
    expect(await statesOf(open)).toEqual(open.map((id) => (id === held.rootId ? 'dead' : 'waiting')))
    // The copy of the redriven letter expired in its queue.
    expect(await statesOf([dead, redriven])).toEqual(['dead', 'waiting'])
  })
})

/** Bulk deletes of a queue are audited with the number of letters, and financial letters need force. */
import { expect, it } from 'vitest'
import type { AuditContext } from '../../../src/storage/contract/audit.ts'
import { newItems, noon } from '../../make.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { createLetterActions } from '../support/letter-actions.ts'
import { describeStores } from '../support/test-stores.ts'

const traceOf = (action: string): AuditContext => ({
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
    return { work, letters, open: open.slice(3) }
  }
  const clearing = {
    op: 'clear',
    isWaiting: true,
    isScheduled: true,
    isLeased: false,
    countMax: 100,
  } as const

  it('the audit row of a clear counts removed letters by state', async () => {
    const { letters } = await someOfEach('standard')
    const clear = { ...clearing, queue: letters, trace: traceOf('queue.clear') }
    expect(await given.run(clear)).toEqual({ removed: 2, isMore: false })
    expect(await given.run(clear)).toEqual({ removed: 0, isMore: false })
    expect(await given.run({ ...clear, isLeased: true })).toEqual({ removed: 1, isMore: false })
    expect(await details(letters)).toEqual([
      ['queue.clear', { removed: 1, letters: { leased: 1 } }],
      ['queue.clear', { removed: 2, letters: { waiting: 2 } }],
    ])
  })

  it('the audit row of a delete names the removed letters', async () => {
    const { letters, open } = await someOfEach('standard')
    const ids = ['0'.repeat(27), ...open]
    const command = {
      op: 'delete',
      queue: letters,
      partition: 0,
      ids,
      trace: traceOf('items.delete'),
    } as const
    expect(await given.run(command)).toEqual({ removed: 2 })
    expect(await given.run(command)).toEqual({ removed: 0 })
    expect(await details(letters)).toEqual([
      ['items.delete', { ids: open.toSorted(), removed: 2, letters: { waiting: 2 } }],
    ])
  })

  it('the audit row of a queue deletion counts its letters by state', async () => {
    const { letters } = await someOfEach('standard')
    const deleting = { op: 'delete-queue', name: letters, trace: traceOf('queue.delete') } as const
    expect(await given.run(deleting)).toEqual({ removed: 5 })
    expect(await details(letters)).toEqual([
      [
        'queue.delete',
        { removed: 5, letters: { waiting: 2, leased: 1, dead: 1, discarded: 1 }, archived: 1 },
      ],
    ])
    const ordinary = await given.queue()
    await given.run({ op: 'delete-queue', name: ordinary, trace: traceOf('queue.delete') })
    expect(await details(ordinary)).toEqual([['queue.delete', { removed: 0 }]])
  })

  it('open letters of class financial are removed only with force', async () => {
    const { letters } = await someOfEach('financial')
    const clear = { ...clearing, queue: letters, trace: traceOf('queue.clear') }
    const deleting = { op: 'delete-queue', name: letters, trace: traceOf('queue.delete') } as const
    await expectRefusal(given.run(clear), 'QUEUE_HOLDS_LETTERS')
    await expectRefusal(given.run(deleting), 'QUEUE_HOLDS_LETTERS')
    expect(await details(letters)).toEqual([])
    expect(await given.run({ ...clear, isForced: true })).toEqual({ removed: 2, isMore: false })
    // A letter in redrive and a DEAD letter are left.
    await expectRefusal(given.run(deleting), 'QUEUE_HOLDS_LETTERS')
    expect(await given.run(clear)).toEqual({ removed: 0, isMore: false })
    expect(await given.run({ ...deleting, isForced: true })).toEqual({ removed: 3 })
  })

  it('a financial queue without open letters can be deleted', async () => {
    const letters = await given.queue({ letterClass: 'financial' })
    await given.run({ op: 'produce', queue: letters, partition: 0, items: newItems(2), now: noon })
    expect(await given.run({ ...clearing, queue: letters })).toEqual({ removed: 2, isMore: false })
    expect(await given.run({ op: 'delete-queue', name: letters })).toEqual({ removed: 0 })
  })
})

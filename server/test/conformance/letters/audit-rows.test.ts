/**
 * Audit rows of actions on letters: the store writes them in the same transaction, for what really changed.
 */
import { expect, it } from 'vitest'
import type { AuditContext } from '../../../src/storage/contract/audit.ts'
import { bytes, day, newItems, noon } from '../../make.ts'
import { createLetterActions } from '../support/letter-actions.ts'
import { describeStores } from '../support/test-stores.ts'

const createAudit = (action: string, changes: Partial<AuditContext> = {}): AuditContext => ({
  at: noon,
  actor: 'ann',
  action,
  reason: 'INC-7',
  requestId: 'r1',
  details: { requested: 'so' },
  ...changes,
})
const unknownId = '0'.repeat(27)

describeStores('audit rows of letters', (given) => {
  const actions = createLetterActions(given)
  const trail = async (target: string) =>
    (await given.storage.listAudit({ target, countMax: 100 })).map(({ id, ...entry }) => entry)
  const auditedActions = async (target: string) => (await trail(target)).map(({ action }) => action)
  const some = async (count: number, letters = {}) => {
    const queues = await actions.createQueues({}, letters)
    return { ...queues, ids: await actions.produceDead(queues.work, newItems(count)) }
  }
  const audit = createAudit('letter.redrive')

  it('each sent letter gets an audit row, and a refused one none', async () => {
    const { work, ids } = await some(3)
    const [sent = '', discardedId = '', other = ''] = ids
    await actions.discard([discardedId])
    await actions.redrive([sent, discardedId, other, unknownId, sent], { audit })
    const common = { at: noon, actor: 'ann', action: 'letter.redrive', reason: 'INC-7', requestId: 'r1' }
    const counted = { letters: 2, refused: { discarded: 1, missing: 1, redriving: 1 } }
    expect(await trail(sent)).toEqual([
      { ...common, target: sent, details: { requested: 'so', queue: work, number: 1, ...counted } },
    ])
    expect(await auditedActions(other)).toEqual(['letter.redrive'])
    expect(await auditedActions(discardedId)).toEqual([])
    expect(await auditedActions(unknownId)).toEqual([])
    await actions.redrive([sent], { audit })
    expect(await auditedActions(sent)).toEqual(['letter.redrive'])
  })

  it('ten concurrent redrives of a letter write one audit row', async () => {
    const { ids } = await some(1)
    const [letterId = ''] = ids
    const sent = await Promise.all(Array.from({ length: 10 }, () => actions.redrive([letterId], { audit })))
    expect(sent.flat().filter(({ isStarted }) => isStarted)).toHaveLength(1)
    expect(await auditedActions(letterId)).toEqual(['letter.redrive'])
  })

  it('an action writes one summary row on request, and none if nothing changed', async () => {
    const { letters, ids } = await some(3)
    const sum = { action: 'letters.auto-redrive', target: letters }
    await actions.redrive(ids.slice(0, 2), { audit: { ...audit, sum } })
    await actions.redrive(ids, { audit: { ...audit, sum } })
    await actions.redrive(ids, { audit: { ...audit, sum } })
    expect((await trail(letters)).map(({ action, details }) => ({ action, details }))).toEqual([
      { action: 'letters.auto-redrive', details: { requested: 'so', letters: 1, refused: { redriving: 2 } } },
      { action: 'letters.auto-redrive', details: { requested: 'so', letters: 2 } },
    ])
  })

  it('a rejected write leaves no audit rows', async () => {
    const { ids } = await some(1)
    const [letterId = ''] = ids
    const how = { isDeadAllowed: false, isCapped: true, actor: 'ann', now: noon, audit }
    const write = given.storage.write([
      { op: 'redrive', letters: [{ letterId, queue: null }], ...how },
      { op: 'delete-queue', name: 'nowhere' },
    ])
    await expect(write).rejects.toThrow()
    expect(await auditedActions(letterId)).toEqual([])
  })

  it('discard, archive and restore write one audit row each', async () => {
    const { letters, ids } = await some(3)
    const [a = '', b = '', c = ''] = ids
    await actions.redriveOne(c)
    const discard = {
      op: 'discard',
      letters: ids.map((letterId) => ({ letterId })),
      reason: 'obsolete',
      now: noon,
      audit: createAudit('letter.discard'),
    } as const
    await given.run(discard)
    await given.run(discard)
    expect(await auditedActions(a)).toEqual(['letter.discard'])
    expect(await auditedActions(c)).toEqual([])
    const archive = {
      op: 'archive',
      queue: letters,
      endedBefore: noon + day,
      countMax: 10,
      now: noon + day,
      audit: createAudit('letters.archive'),
    } as const
    await given.run(archive)
    await given.run(archive)
    expect((await trail(letters)).map(({ action, details }) => ({ action, details }))).toEqual([
      { action: 'letters.archive', details: { requested: 'so', letters: 2 } },
    ])
    // Actions on archived letters are refused with a reason.
    expect((await given.run(discard)).map(({ refusal }) => refusal)).toEqual([
      'archived',
      'archived',
      'redriving',
    ])
    expect(await actions.redrive([a], { audit })).toEqual([
      { letterId: a, isStarted: false, refusal: 'archived' },
    ])
    expect(await auditedActions(a)).toEqual(['letter.discard'])

    const restore = {
      op: 'restore',
      letterIds: [a, c, unknownId],
      now: noon + day,
      audit: createAudit('letter.restore'),
    } as const
    await given.run(restore)
    await given.run(restore)
    expect(await trail(a)).toMatchObject([
      {
        action: 'letter.restore',
        details: { requested: 'so', letters: 1, refused: { missing: 1, 'not-discarded': 1 } },
      },
      { action: 'letter.discard' },
    ])
    expect(await auditedActions(c)).toEqual([])
    const purge = {
      op: 'purge-archive',
      queue: letters,
      archivedBefore: noon + 2 * day,
      countMax: 10,
    } as const
    await given.run({ ...purge, audit: createAudit('letters.purge-archive') })
    await given.run({ ...purge, audit: createAudit('letters.purge-archive') })
    expect((await trail(letters)).map(({ action, details }) => ({ action, details }))).toEqual([
      { action: 'letters.purge-archive', details: { requested: 'so', letters: 1 } },
      { action: 'letters.archive', details: { requested: 'so', letters: 2 } },
    ])
    expect(await auditedActions(b)).toEqual(['letter.discard'])
  })
})

describeStores('an edit with a redrive', (given) => {
  const actions = createLetterActions(given)
  const audit = createAudit('letter.redrive', { details: {} })
  const rows = async (target: string) =>
    (await given.storage.listAudit({ target, countMax: 100 })).map(({ action, details }) => ({
      action,
      details,
    }))

  it('an edit with a redrive is stored, sent and audited in one transaction', async () => {
    const { work } = await actions.createQueues()
    const [letterId = ''] = await actions.produceDead(work, [
      { payload: bytes('as it came'), key: bytes('k') },
    ])
    const edit = { payload: bytes('corrected'), headers: [['x', bytes('y')] as const] }
    const [sent] = await actions.redrive([], { letters: [{ letterId, queue: null, edit }], audit })
    expect(sent).toMatchObject({ isStarted: true, number: 1, edit: 1 })
    expect(await actions.listItems(work)).toMatchObject([{ ...edit, key: bytes('k'), letterId }])
    expect(await actions.readNewestRedrive(letterId)).toMatchObject({ edit: 1 })
    expect(await given.storage.listEdits(letterId)).toMatchObject([{ number: 1, actor: 'ann', ...edit }])
    expect(await rows(letterId)).toEqual([
      { action: 'letter.redrive', details: { queue: work, number: 1, edit: 1, letters: 1 } },
      { action: 'letter.edit', details: { number: 1, changed: ['payload', 'headers'] } },
    ])
  })

  it('a refused redrive does not store its edit', async () => {
    const { work, letters } = await actions.createQueues()
    const [letterId = ''] = await actions.produceDead(work, newItems(1))
    const edit = { payload: bytes('corrected') }
    for (const queue of ['nowhere', letters]) {
      const [refused] = await actions.redrive([], { letters: [{ letterId, queue, edit }], audit })
      expect(refused).toMatchObject({ isStarted: false })
    }
    await actions.discard([letterId])
    await actions.redrive([], { letters: [{ letterId, queue: null, edit }], audit })
    expect(await given.storage.listEdits(letterId)).toEqual([])
    expect(await rows(letterId)).toEqual([])
  })

  it('one of twelve concurrent edits with a redrive is stored', async () => {
    const { work } = await actions.createQueues()
    const [letterId = ''] = await actions.produceDead(work, newItems(1))
    const all = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        actions.redrive([], {
          letters: [{ letterId, queue: null, edit: { payload: bytes(`version ${index}`) } }],
          audit,
        }),
      ),
    )
    const results = all.flat()
    expect(results.filter(({ isStarted }) => isStarted)).toHaveLength(1)
    expect(results.filter((each) => !each.isStarted && each.refusal === 'redriving')).toHaveLength(11)
    const edits = await given.storage.listEdits(letterId)
    expect(edits).toMatchObject([{ number: 1 }])
    expect(await actions.listItems(work)).toMatchObject([{ payload: edits[0]?.payload }])
    expect((await rows(letterId)).map(({ action }) => action)).toEqual(['letter.redrive', 'letter.edit'])
  })
})

/** A person decides about a group; a letter that arrives later makes a resolved group regressed. */
import { expect, it } from 'vitest'
import { openLifecycle } from '../../../src/core/dead-letters/group-lifecycle.ts'
import { aFailure, anOrigin, hour, minute, newItems, noon } from '../../make.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('the lifecycle of groups', (given) => {
  const actions = createLetterActions(given)
  const failing = (message: string) =>
    aLetter({
      failure: aFailure({ errorClass: 'E', message, stack: '' }),
      origin: anOrigin({ name: 'shop' }),
    })
  const list = (
    queue: string,
    states?: readonly ('open' | 'muted' | 'resolved' | 'regressed')[],
    now = noon,
  ) =>
    given.storage.listGroups({
      filter: { queues: [queue] },
      isEmptyToo: true,
      countMax: 100,
      ...(states !== undefined && { lifecycle: { states, now } }),
    })
  const decide = (groupId: number, state: 'acknowledged' | 'muted' | 'resolved', changedAt = noon) =>
    given.run({
      op: 'set-group-lifecycle',
      groupId,
      lifecycle: {
        state,
        changedAt,
        mutedUntil: state === 'muted' ? changedAt + hour : null,
        actor: 'ana',
        note: 'seen',
      },
    })
  const notices = async () =>
    (await given.storage.listGroupNotices({ countMax: 100 })).map(({ groupId, kind }) => [groupId, kind])
  const createGroup = async (message: string) => {
    const queue = await given.queue()
    await actions.capture(queue, [failing(message)])
    const [group] = await list(queue)
    return { queue, id: group?.id ?? -1 }
  }

  it('a group is open until a person decides about it, and shows the decision, the person and the note', async () => {
    const { queue, id } = await createGroup('no route')
    expect(await list(queue)).toMatchObject([{ id, lifecycle: openLifecycle }])
    expect(await decide(id, 'acknowledged')).toEqual({ groupId: id, before: openLifecycle })
    const lifecycle = {
      state: 'acknowledged',
      changedAt: noon,
      mutedUntil: null,
      actor: 'ana',
      note: 'seen',
    }
    expect(await list(queue)).toMatchObject([{ id, lifecycle }])
    expect(await decide(id, 'resolved', noon + 1)).toEqual({ groupId: id, before: lifecycle })
  })

  it('a letter makes a resolved group regressed, and leaves other states as they are', async () => {
    const [resolved, acknowledged] = [await createGroup('one'), await createGroup('two')]
    await decide(resolved.id, 'resolved')
    await decide(acknowledged.id, 'acknowledged')
    await actions.capture(resolved.queue, [failing('one')], noon + minute)
    await actions.capture(acknowledged.queue, [failing('two')], noon + minute)
    expect(await list(resolved.queue)).toMatchObject([
      { lifecycle: { state: 'regressed', changedAt: noon + minute, actor: 'ana', note: 'seen' } },
    ])
    expect(await list(acknowledged.queue)).toMatchObject([{ lifecycle: { state: 'acknowledged' } }])
  })

  it('a letter that is captured again does not make its group regressed', async () => {
    const queue = await given.queue()
    await actions.capture(queue, [{ ...failing('same'), sourceId: 's-1' }])
    const [group] = await list(queue)
    await decide(group?.id ?? -1, 'resolved')
    await actions.capture(queue, [{ ...failing('same'), sourceId: 's-1' }], noon + minute)
    expect(await list(queue)).toMatchObject([{ count: 1, lifecycle: { state: 'resolved' } }])
  })

  it('an item that dies and a letter whose redrive fails make their group regressed', async () => {
    const { work, letters } = await actions.createQueues()
    const error = { errorCode: 'r', errorClass: 'E', message: 'm', stack: '' }
    const [letterId = ''] = await actions.produceDead(work, newItems(1), error)
    const [group] = await list(letters)
    const id = group?.id ?? -1
    await decide(id, 'resolved')
    await actions.produceDead(work, newItems(1), error, noon + minute)
    expect(await list(letters)).toMatchObject([{ lifecycle: { state: 'regressed' } }])
    await decide(id, 'resolved', noon + 2 * minute)
    const sent = await actions.redriveOne(letterId, noon + 3 * minute)
    const item = await actions.leaseOne({ queue: work, partition: sent.partition }, noon + 3 * minute)
    await actions.declareDead(item, error, noon + 3 * minute)
    expect(await list(letters)).toMatchObject([{ lifecycle: { state: 'regressed' } }])
  })

  it('a letter of a merged group makes the group regressed that shows it', async () => {
    const queue = await given.queue()
    await actions.capture(queue, [failing('alpha'), failing('alpha'), failing('beta')])
    const [alpha, beta] = (await list(queue)).map(({ id }) => id)
    await given.run({ op: 'merge-groups', into: alpha ?? 0, groupIds: [beta ?? 0] })
    expect(await decide(beta ?? 0, 'resolved')).toMatchObject({ groupId: alpha })
    await actions.capture(queue, [failing('beta')], noon + minute)
    expect(await list(queue)).toMatchObject([{ id: alpha, count: 4, lifecycle: { state: 'regressed' } }])
  })

  it('a letter that moves from another group does not make a group regressed', async () => {
    const queue = await given.queue()
    const letterIds = await actions.capture(queue, [failing('first'), failing('second')])
    const groups = await list(queue)
    const [from, to] = groups.map(({ id }) => id)
    const split = await given.run({ op: 'create-split', splitId: 's', groupId: from ?? 0, title: null })
    await decide(split.groupId, 'resolved')
    await given.run({
      op: 'regroup-letters',
      letterIds,
      split: { splitId: 's', groupId: from ?? 0, into: split.groupId },
      now: noon + minute,
    })
    const states = new Map((await list(queue)).map(({ id, lifecycle }) => [id, lifecycle.state]))
    expect(states.get(split.groupId)).toBe('resolved')
    expect(states.get(to ?? 0)).toBe('open')
  })

  it('groups are listed by their state at a time: a mute that ended leaves the group open', async () => {
    const queue = await given.queue()
    await actions.capture(queue, [failing('muted'), failing('resolved'), failing('open')])
    const ids = new Map((await list(queue)).map(({ id, title }) => [title, id]))
    await decide(ids.get('muted') ?? 0, 'muted')
    await decide(ids.get('resolved') ?? 0, 'resolved')
    const titles = async (states: Parameters<typeof list>[1], now?: number) =>
      (await list(queue, states, now)).map(({ title }) => title).sort()
    expect(await titles(['muted'])).toEqual(['muted'])
    expect(await titles(['open', 'resolved'])).toEqual(['open', 'resolved'])
    expect(await titles(['muted'], noon + hour)).toEqual([])
    expect(await titles(['open'], noon + hour)).toEqual(['muted', 'open'])
  })

  it('new and regressed groups leave a notice until it is cleared, and a newer notice stays', async () => {
    const { queue, id } = await createGroup('noticed')
    expect(await notices()).toContainEqual([id, 'new'])
    const read = await given.storage.listGroupNotices({ countMax: 100 })
    await decide(id, 'resolved')
    await actions.capture(queue, [failing('noticed')], noon + minute)
    await given.run({ op: 'clear-group-notices', notices: read })
    expect(await notices()).toEqual([[id, 'regressed']])
    await given.run({
      op: 'clear-group-notices',
      notices: await given.storage.listGroupNotices({ countMax: 100 }),
    })
    await actions.capture(queue, [failing('noticed')], noon + minute)
    expect(await notices()).toEqual([])
  })

  it('a write that fails neither decides about a group nor makes it regressed', async () => {
    const { queue, id } = await createGroup('rolled back')
    await decide(id, 'resolved')
    const lost = { op: 'fence', lock: { name: 'nobody', token: 1 } } as const
    const letters = { op: 'import', queue, partition: 0, items: [failing('rolled back')], now: noon } as const
    await expect(given.storage.write([letters, lost])).rejects.toMatchObject({ code: 'LOCK_LOST' })
    expect(await list(queue)).toMatchObject([{ count: 1, lifecycle: { state: 'resolved' } }])
  })

  it('letters and a decision in one write take effect in their order', async () => {
    const { queue, id } = await createGroup('in order')
    const letters = { op: 'import', queue, partition: 0, items: [failing('in order')], now: noon } as const
    const resolve = {
      op: 'set-group-lifecycle',
      groupId: id,
      lifecycle: { state: 'resolved', changedAt: noon, mutedUntil: null, actor: 'ana', note: '' },
    } as const
    await given.storage.write([letters, resolve])
    expect(await list(queue)).toMatchObject([{ count: 2, lifecycle: { state: 'resolved' } }])
    await given.storage.write([resolve, letters])
    expect(await list(queue)).toMatchObject([{ count: 3, lifecycle: { state: 'regressed' } }])
  })

  it('a group that does not exist is refused', async () => {
    await expect(decide(2 ** 40, 'resolved')).rejects.toMatchObject({ code: 'GROUP_NOT_FOUND' })
    await expect(decide(999_999, 'resolved')).rejects.toMatchObject({ code: 'GROUP_NOT_FOUND' })
  })

  it('a queue that is deleted takes the decisions and notices of its groups with it', async () => {
    const { queue, id } = await createGroup('deleted')
    await decide(id, 'resolved')
    await given.run({ op: 'delete-queue', name: queue, isForced: true, now: noon })
    expect(await notices()).not.toContainEqual([id, 'new'])
  })
})

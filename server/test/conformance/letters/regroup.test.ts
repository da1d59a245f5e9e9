/** Letters that are grouped again, and groups that are split. */
import { expect, it } from 'vitest'
import type { GroupingRule } from '../../../src/core/grouping/rules.ts'
import { aFailure, anOrigin, bytes, newItems, noon } from '../../make.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('letters grouped again', (given) => {
  const actions = createLetterActions(given)
  const depot: GroupingRule = { name: 'depot', as: 'variable', pattern: 'depot (\\w+)' }
  const type: GroupingRule = { name: 'type', as: 'code', path: ['type'] }
  const failing = (message: string, payload: object = {}, errorClass = 'E') =>
    aLetter({
      payload: bytes(JSON.stringify(payload)),
      failure: aFailure({ errorClass, message, stack: '' }),
      origin: anOrigin({ name: 'shop' }),
      deadLetteredAt: noon,
    })
  const groups = (queue: string) =>
    given.storage.listGroups({ filter: { queues: [queue] }, isEmptyToo: false, countMax: 100 })
  const shown = async (queue: string) => (await groups(queue)).map(({ title, count }) => [title, count])
  const setRules = (queue: string, groupingRules: readonly GroupingRule[]) =>
    given.run({ op: 'update-queue', name: queue, changes: { groupingRules }, now: noon })

  it('letters move with their counts and arrivals to the groups of the present rules', async () => {
    const queue = await given.queue()
    const ids = await actions.capture(queue, [
      failing('depot north is closed'),
      failing('depot south is closed'),
    ])
    expect(await groups(queue)).toHaveLength(2)
    await setRules(queue, [depot])
    const regroup = () => given.run({ op: 'regroup-letters', letterIds: ids, split: null, now: noon })
    expect(await regroup()).toEqual({ moved: 2 })
    expect(await regroup()).toEqual({ moved: 0 })
    const [group] = await groups(queue)
    expect(group).toMatchObject({ title: 'depot <depot> is closed', count: 2, firstSeenAt: noon })
    const arrivals = await given.storage.groupArrivals([group?.id ?? 0], 0)
    expect(arrivals.map(({ count }) => count)).toEqual([2])
    expect(await given.storage.verify()).toEqual([])
  })

  it('rules apply to captured letters, to items that die and to letters that fail again', async () => {
    const { work, letters } = await actions.createQueues()
    await setRules(letters, [depot, type])
    await actions.capture(letters, [failing('depot north is closed', { type: 'a' })])
    const error = { errorCode: 'r', errorClass: 'E', message: 'depot south is closed', stack: '' }
    const items = newItems(1).map((item) => ({ ...item, payload: bytes('{"type":"a"}') }))
    const [letterId = ''] = await actions.produceDead(work, items, error)
    expect((await shown(letters)).map(([title]) => title)).toEqual([
      'depot <depot> is closed [type=a]',
      'depot <depot> is closed [type=a]',
    ])
    const sent = await actions.redriveOne(letterId)
    const leased = await actions.leaseOne({ queue: work, partition: sent.partition })
    await actions.declareDead(leased, { ...error, message: 'depot west is full' })
    const letter = await actions.readLetter(letterId)
    const titles = new Map((await groups(letters)).map(({ id, title }) => [id, title]))
    expect(titles.get(letter.groupId ?? -1)).toBe('depot <depot> is full [type=a]')
  })

  it('a split moves only letters of its group, keeps their classes, and repeats without effect', async () => {
    const queue = await given.queue()
    const ids = await actions.capture(queue, [failing('refused'), failing('refused'), failing('disk full')])
    const [source] = await groups(queue)
    const groupId = source?.id ?? 0
    const create = () => given.run({ op: 'create-split', splitId: 'one', groupId, title: 'mine' })
    const { groupId: into } = await create()
    expect(await create()).toEqual({ groupId: into })
    const split = { splitId: 'one', groupId, into }
    const move = (letterIds: readonly string[]) =>
      given.run({ op: 'regroup-letters', letterIds, split, now: noon })
    expect(await move(ids.slice(1))).toEqual({ moved: 1 })
    expect(await move(ids.slice(1))).toEqual({ moved: 0 })
    expect(new Set(await shown(queue))).toEqual(
      new Set([
        ['mine', 1],
        ['refused', 1],
        ['disk full', 1],
      ]),
    )
    expect((await groups(queue)).find(({ id }) => id === into)).toMatchObject({
      errorClass: 'E',
      isTitlePinned: true,
    })
    expect(await given.storage.verify()).toEqual([])
    await expect(
      given.run({ op: 'create-split', splitId: 'two', groupId: 2_000_000_000, title: null }),
    ).rejects.toThrow('does not exist')
  })

  it('a job is changed only from the version that was read', async () => {
    const put = (version: number, state: string) =>
      given.run({ op: 'put-group-job', id: 'job-a', version, state, document: { moved: version } })
    await put(0, 'running')
    await put(1, 'running')
    await expect(put(1, 'done')).rejects.toThrow('no longer at version 1')
    await expect(put(0, 'done')).rejects.toThrow('no longer at version 0')
    expect(await given.storage.getGroupJob('job-a')).toMatchObject({ version: 2, document: { moved: 1 } })
    expect(await given.storage.listGroupJobs({ states: ['running'], countMax: 10 })).toHaveLength(1)
    expect(await given.storage.listGroupJobs({ beforeId: 'job-a', countMax: 10 })).toEqual([])
  })
})

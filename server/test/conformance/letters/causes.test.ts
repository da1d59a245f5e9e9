/** Causes over all queues, and groups that are merged: by the learned templates and by a person. */
import { expect, it } from 'vitest'
import type { CountedFilter } from '../../../src/storage/contract/letters.ts'
import { aFailure, anOrigin } from '../../make.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { listLetters } from '../support/list-letters.ts'
import { describeStores, describeTheseStores } from '../support/test-stores.ts'

const newestFirst = {
  order: 'deadLetteredAt',
  isDescending: true,
  countMax: 100,
  examinedMax: 1_000,
  bytes: 'none',
} as const
const names = ['alice', 'bob', 'carol', 'dave', 'erin', 'frank', 'grace']

describeStores('causes over all queues', (given) => {
  const actions = createLetterActions(given)
  const capture = (queue: string, ...messages: readonly string[]) =>
    actions.capture(
      queue,
      messages.map((message) =>
        aLetter({
          failure: aFailure({ errorClass: 'E', message, stack: '' }),
          origin: anOrigin({ name: `work-of-${queue}` }),
        }),
      ),
    )
  const groups = (filter: CountedFilter) =>
    given.storage.listGroups({ filter, isEmptyToo: false, countMax: 100 })
  const causes = (filter: CountedFilter = {}) => given.storage.listCauses({ filter, countMax: 100 })
  const count = async (filter: CountedFilter) =>
    (await given.storage.countLetters({ filter, by: [] }))[0]?.count ?? 0
  const list = async (filter: CountedFilter) =>
    (await listLetters(given.storage, { ...newestFirst, filter })).letters.length

  it('a cause counts its letters over all queues, and filters by it select exactly these', async () => {
    const [one, two] = [await given.queue(), await given.queue()]
    await capture(one, 'order 1 not found', 'order 2 not found', 'disk full')
    await capture(two, 'order 3 not found')
    const [orders, disk, ...others] = await causes()
    expect(others).toEqual([])
    expect([orders?.count, disk?.count]).toEqual([3, 1])
    expect(await causes({ queues: [two] })).toEqual([{ ...orders, count: 1 }])
    const filter = { causes: [orders?.causeKey ?? ''] }
    expect((await groups(filter)).map(({ queue, count: n }) => [queue, n])).toEqual([
      [one, 2],
      [two, 1],
    ])
    expect([await count(filter), await list(filter)]).toEqual([3, 3])
    expect(await count({ ...filter, queues: [one] })).toBe(2)
    expect(await count({ causes: ['unknown'] })).toBe(0)
    const page = { filter: {}, countMax: 1, after: { count: 3, causeKey: orders?.causeKey ?? '' } }
    expect(await given.storage.listCauses(page)).toEqual([disk])
  })

  it('groups of two queues get one cause when their templates become alike, and the old key still finds it', async () => {
    const [one, two] = [await given.queue(), await given.queue()]
    await capture(one, `no user ${names[0]}`)
    await capture(two, `no user ${names[1]}`)
    const before = await causes()
    expect(before).toHaveLength(2)
    for (const name of names.slice(2)) await capture(one, `no user ${name}`)
    const after = await causes()
    expect(after.map(({ count: n }) => n)).toEqual([names.length])
    for (const { causeKey } of before) {
      expect(await given.storage.findCauseKey(causeKey)).toBe(after[0]?.causeKey)
      expect(await count({ causes: [causeKey] })).toBe(names.length)
    }
    // A third queue whose first letter has a cause that was merged.
    const three = await given.queue()
    await capture(three, `no user ${names[1]}`)
    expect((await causes()).map(({ count: n }) => n)).toEqual([names.length + 1])
  })

  it('groups that a wider template covers are listed as one group, under every id that they had', async () => {
    const queue = await given.queue()
    const ids = new Set<number>()
    for (const name of names) {
      await capture(queue, `login of user ${name} refused`)
      for (const { id } of await groups({ queues: [queue] })) ids.add(id)
    }
    const [group, ...others] = await groups({ queues: [queue] })
    expect(others).toEqual([])
    expect(group).toMatchObject({ title: 'login of user <*> refused', count: names.length })
    expect(ids.size).toBeGreaterThan(1)
    for (const id of ids) {
      expect((await groups({ groupIds: [id] })).map((found) => found.id)).toEqual([group?.id])
      expect(await list({ groupIds: [id] })).toBe(names.length)
      const arrivals = await given.storage.groupArrivals([id], 0)
      expect(arrivals.reduce((sum, { count: n }) => sum + n, 0)).toBe(names.length)
    }
    expect(group?.mergedIds.toSorted()).toEqual([...ids].filter((id) => id !== group?.id).toSorted())
  })

  it('merged groups are one group with all letters, counts and new letters of both', async () => {
    const queue = await given.queue()
    await capture(queue, 'disk full', 'disk full', 'no space left on device')
    const [into, merged] = await groups({ queues: [queue] })
    const [a, b] = [into?.id ?? 0, merged?.id ?? 0]
    const result = await given.run({ op: 'merge-groups', into: a, groupIds: [b] })
    expect(result).toEqual({ groupId: a, queue, merged: [b] })
    await capture(queue, 'no space left on device')
    for (const groupIds of [[a], [b], [a, b]]) {
      const [group, ...others] = await groups({ groupIds })
      expect(others).toEqual([])
      expect(group).toMatchObject({
        id: a,
        title: 'disk full',
        count: 4,
        mergedIds: [b],
        states: { waiting: 4 },
      })
      expect([await count({ groupIds }), await list({ groupIds })]).toEqual([4, 4])
    }
    expect(await given.storage.countLetters({ filter: { queues: [queue] }, by: ['group'] })).toEqual([
      { count: 4, group: a },
    ])
    expect(await given.storage.readGroupLabels([b])).toMatchObject([{ id: b, shownAs: a }])
    expect(await causes({ queues: [queue] })).toMatchObject([{ count: 4 }])
    // Again, and through the other group: nothing is left to merge.
    expect(await given.run({ op: 'merge-groups', into: b, groupIds: [a] })).toMatchObject({
      groupId: a,
      merged: [],
    })
  })

  it('a group merged by hand still learns: letters of a wider template join the merged group', async () => {
    const queue = await given.queue()
    await capture(queue, 'disk full', 'disk full', 'unknown SKU teal-vase-medium')
    const [into, merged] = await groups({ queues: [queue] })
    await given.run({ op: 'merge-groups', into: into?.id ?? 0, groupIds: [merged?.id ?? 0] })
    await capture(queue, 'unknown SKU red-towel-small', 'unknown SKU sage-mug-mini')
    expect(await groups({ queues: [queue] })).toMatchObject([{ id: into?.id, count: 5 }])
  })

  it('a chain of merges ends in one group, and a pinned title stays', async () => {
    const queue = await given.queue()
    await capture(queue, 'disk full', 'no space left', 'quota of the volume exceeded')
    const [a = 0, b = 0, c = 0] = (await groups({ queues: [queue] })).map(({ id }) => id)
    await given.run({ op: 'pin-title', groupIds: [b], title: 'Storage is full' })
    await given.run({ op: 'merge-groups', into: b, groupIds: [a] })
    await given.run({ op: 'merge-groups', into: c, groupIds: [a] })
    const [group, ...others] = await groups({ queues: [queue] })
    expect(others).toEqual([])
    expect(group).toMatchObject({ id: c, title: 'Storage is full', isTitlePinned: true, count: 3 })
    const unpinned = await given.run({ op: 'pin-title', groupIds: [a], title: null })
    expect(unpinned.groups).toEqual([{ id: c, title: 'Storage is full' }])
    expect(await groups({ queues: [queue] })).toMatchObject([{ isTitlePinned: false }])
  })

  it('causes merged by hand are one cause in all queues, and their groups stay', async () => {
    const [one, two] = [await given.queue(), await given.queue()]
    await capture(one, 'the printer is on fire')
    await capture(two, 'paper jam in tray')
    const [a, b] = await causes()
    const [into, from] = [a?.causeKey ?? '', b?.causeKey ?? '']
    expect(await given.run({ op: 'merge-causes', into, causeKeys: [from] })).toEqual({
      causeKey: into,
      merged: [from],
    })
    expect(await causes()).toEqual([{ causeKey: into, count: 2 }])
    expect(await groups({ causes: [from] })).toHaveLength(2)
    const three = await given.queue()
    await capture(three, 'paper jam in tray')
    expect(await causes()).toEqual([{ causeKey: into, count: 3 }])
  })

  it('groups of different queues, and unknown ones, are not merged', async () => {
    const [one, two] = [await given.queue(), await given.queue()]
    await capture(one, 'a')
    await capture(two, 'b')
    const [a = 0, b = 0] = (await groups({})).map(({ id }) => id)
    const merge = (into: number, groupIds: number[]) => given.run({ op: 'merge-groups', into, groupIds })
    await expect(merge(a, [b])).rejects.toThrow('merge their causes instead')
    await expect(merge(a, [2_000_000_000])).rejects.toThrow('group 2000000000 does not exist')
    await expect(given.run({ op: 'merge-causes', into: 'x', causeKeys: ['y'] })).rejects.toThrow('cause "x"')
    expect(await groups({})).toHaveLength(2)
  })
})

describeTheseStores(['PostgreSQL'], 'merges of groups on two servers', (given) => {
  it('merges in both directions, beside captures, lose no letter and leave one group', async () => {
    const queue = await given.queue()
    const servers = [given.storage, await given.testStore.open()]
    const letter = (message: string) =>
      aLetter({ failure: aFailure({ errorClass: 'E', message, stack: '' }) })
    const messages = ['disk full', 'no space left', 'quota exceeded', 'volume is read-only']
    const capture = (server: number, message: string) =>
      servers[server % 2]?.write([
        { op: 'import', queue, partition: 0, items: [letter(message)], now: 1_800_000_000_000_000 },
      ])
    for (const [index, message] of messages.entries()) await capture(index, message)
    const read = () =>
      given.storage.listGroups({ filter: { queues: [queue] }, isEmptyToo: false, countMax: 100 })
    const ids = (await read()).map(({ id }) => id)
    await Promise.all([
      ...Array.from({ length: 40 }, (_, index) => capture(index, messages[index % 4] as string)),
      ...ids.flatMap((into, index) =>
        ids.map((id) => servers[index % 2]?.write([{ op: 'merge-groups', into, groupIds: [id] }])),
      ),
    ])
    const [group, ...others] = await read()
    expect(others).toEqual([])
    expect(group?.count).toBe(44)
    const causes = await given.storage.listCauses({ filter: { queues: [queue] }, countMax: 10 })
    expect(causes.map(({ count }) => count)).toEqual([44])
  })
})

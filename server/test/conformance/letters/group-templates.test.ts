/** Letters whose messages differ in words that no mask knows: groups learn templates from the letters. */
import { describe, expect, it } from 'vitest'
import type { CountedFilter } from '../../../src/storage/contract/letters.ts'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { aFailure, anOrigin, noon } from '../../make.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { listAll, run } from '../support/store-reads.ts'
import { createTestStore, describeStores, describeTheseStores, needsOf } from '../support/test-stores.ts'

const names = ['alice', 'bob', 'carol', 'dave', 'erin', 'frank', 'grace']
const products = ['teal-vase-medium', 'red-towel-small', 'sage-mug-mini', 'navy-candle-set']

describeStores('templates of groups', (given) => {
  const actions = createLetterActions(given)
  const letterWith = (message: string) =>
    aLetter({
      failure: aFailure({ errorClass: 'E', message, stack: '' }),
      origin: anOrigin({ name: 'shop' }),
    })
  const capture = (queue: string, messages: readonly string[]) =>
    actions.capture(queue, messages.map(letterWith))
  const groups = async (filter: CountedFilter) =>
    given.storage.listGroups({ filter, isEmptyToo: false, countMax: 100 })
  const groupIds = async (queue: string) => {
    const letters = await listAll(given.storage, queue)
    return new Map(letters.map(({ failure, groupId }) => [failure?.message ?? '', groupId]))
  }

  it('letters that differ in words with the shape of data share a group, and its title shows the template', async () => {
    const queue = await given.queue()
    for (const product of products) await capture(queue, [`unknown SKU ${product}`])
    expect(await groups({ queues: [queue] })).toMatchObject([
      { title: 'unknown SKU <*>', count: products.length },
    ])
  })

  it('a batch of letters gets the same groups as single letters', async () => {
    const [single, batch] = [await given.queue(), await given.queue()]
    const messages = [
      ...products.map((product) => `unknown SKU ${product}`),
      ...names.map((name) => `no user ${name}`),
    ]
    for (const message of messages) await capture(single, [message])
    await capture(batch, messages)
    const titles = async (queue: string) =>
      (await groups({ queues: [queue] }))
        .map(({ title }) => title)
        .filter((title) => title.includes('<*>'))
        .toSorted()
    expect(await titles(batch)).toEqual(await titles(single))
    expect(await titles(batch)).toEqual(['no user <*>', 'unknown SKU <*>'])
  })

  it('plain words become data when enough groups differ in them, and later letters join the oldest group', async () => {
    const queue = await given.queue()
    for (const name of names) await capture(queue, [`login of user ${name} refused`])
    const ids = await groupIds(queue)
    const root = ids.get('login of user alice refused')
    expect(ids.get('login of user grace refused')).toBe(root)
    expect(await groups({ queues: [queue] })).toContainEqual(
      expect.objectContaining({ id: root, title: 'login of user <*> refused' }),
    )
  })

  it('codes are never merged', async () => {
    const queue = await given.queue()
    const statuses = [400, 401, 403, 404, 409, 422, 429, 500]
    await capture(
      queue,
      statuses.map((status) => `Request failed with status code ${status}`),
    )
    expect(await groups({ queues: [queue] })).toHaveLength(statuses.length)
  })

  it('letters of another queue with the same cause get the same cause, and their own group', async () => {
    const [one, two] = [await given.queue(), await given.queue()]
    await capture(
      one,
      products.slice(0, 2).map((product) => `unknown SKU ${product}`),
    )
    await capture(
      two,
      products.slice(2).map((product) => `unknown SKU ${product}`),
    )
    expect(await groups({ queues: [one, two] })).toHaveLength(2)
  })
})

describe.each(['SQLite file', 'PostgreSQL'] as const)('templates of groups on disk (%s)', (name) => {
  it('templates are kept when the store is opened again', needsOf(name), async () => {
    const testStore = await createTestStore(name)
    try {
      for (const product of products) {
        const storage = await testStore.open()
        if (product === products[0])
          await run(storage, { op: 'create-queue', queue: { name: 'dead' }, now: noon })
        const items = [aLetter({ failure: aFailure({ message: `unknown SKU ${product}`, stack: '' }) })]
        await run(storage, { op: 'import', queue: 'dead', partition: 0, items, now: noon })
        const found = await storage.listGroups({ filter: {}, isEmptyToo: false, countMax: 10 })
        expect(found).toHaveLength(1)
        await storage.close()
      }
    } finally {
      await testStore.drop()
    }
  })
})

describeTheseStores(['PostgreSQL'], 'templates of groups with two servers', (given) => {
  it('servers that capture at the same time form the same groups as one server', async () => {
    const queue = await given.queue()
    const servers = [given.storage, await given.testStore.open()]
    const messages = Array.from({ length: 40 }, (_, index) => {
      const product = `${['teal', 'red', 'navy', 'plum'][index % 4]}-${['vase', 'mug', 'towel'][index % 3]}-${'abcdefghij'[index % 10]}`
      return index % 2 === 0
        ? `unknown SKU ${product}`
        : `Request failed with status code ${400 + (index % 5)}`
    })
    await Promise.all(
      messages.map((message, index) =>
        run(servers[index % 2] as Storage, {
          op: 'import',
          queue,
          partition: 0,
          items: [aLetter({ failure: aFailure({ message, stack: '' }) })],
          now: noon,
        }),
      ),
    )
    const found = await given.storage.listGroups({
      filter: { queues: [queue] },
      isEmptyToo: false,
      countMax: 100,
    })
    expect(found.map(({ title }) => title).toSorted()).toEqual([
      ...[400, 401, 402, 403, 404].map((status) => `Request failed with status code ${status}`),
      'unknown SKU <*>',
    ])
    expect(found.reduce((sum, { count }) => sum + count, 0)).toBe(messages.length)
  })
})

import { expect, it } from 'vitest'
import type { Quota } from '../../../src/core/access/records.ts'
import { noon } from '../../make.ts'
import { changeAccess } from '../support/change-access.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('quotas of namespaces', (given) => {
  const put = (name: string, quota: Quota) =>
    changeAccess(given.storage, {
      change: 'put-namespace',
      namespace: { name, description: '', keyTag: '', createdAt: noon, quota },
    })
  const create = (namespace: string, name: string) =>
    given.storage.write([{ op: 'create-queue', queue: { name, namespace }, now: noon }])

  it('a quota is stored with its namespace, and removed with the next change', async () => {
    const quota = { queuesMax: 3, itemsMax: 5_000_000_000, bytesMax: 2 ** 45, requestsPerSecondMax: 10 }
    await put('stored', quota)
    const [stored] = await given.storage.listAccess({ of: 'namespaces', name: 'stored', countMax: 1 })
    expect(stored?.quota).toEqual(quota)
    await put('stored', {})
    const [changed] = await given.storage.listAccess({ of: 'namespaces', name: 'stored', countMax: 1 })
    expect(changed?.quota).toBeUndefined()
  })

  it('queues that are created at the same time do not exceed the quota', async () => {
    await put('queues', { queuesMax: 3 })
    const names = Array.from({ length: 8 }, (_, index) => `queues-${index}`)
    const results = await Promise.allSettled(names.map((name) => create('queues', name)))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
    const queues = await given.storage.listQueues({ namespace: 'queues', countMax: 10 })
    expect(queues).toHaveLength(3)
    await expectRefusal(create('queues', 'queues-9'), 'QUOTA_EXCEEDED')
    await given.storage.write([{ op: 'delete-queue', name: queues[0]?.name ?? '' }])
    await create('queues', 'queues-10')
  })

  it('the usage of a namespace counts its items in every state, with their payloads', async () => {
    await put('usage', {})
    await put('other', {})
    for (const [namespace, name] of [
      ['usage', 'usage-a'],
      ['usage', 'usage-b'],
      ['other', 'other-a'],
    ] as const) {
      await create(namespace, name)
      const items = [{ payload: new Uint8Array(1_000) }, { payload: new Uint8Array(24) }]
      await given.storage.write([{ op: 'produce', queue: name, partition: 0, items, now: noon }])
    }
    await given.storage.write([{ op: 'lease', queue: 'usage-a', partition: 0, holders: ['w'], now: noon }])
    expect(await given.storage.readUsage({ namespace: 'usage', isWithBytes: true })).toEqual({
      queues: 2,
      items: 4,
      bytes: 2_048,
    })
    expect(await given.storage.readUsage({ namespace: 'nobody', isWithBytes: false })).toEqual({
      queues: 0,
      items: 0,
      bytes: null,
    })
  })
})

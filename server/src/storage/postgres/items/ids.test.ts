import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../../tools/services/require-service.ts'
import { hour, newItems, noon } from '../../../../test/make.ts'
import { run, testDatabase } from '../../../../test/postgres.ts'

const postgres = await requireService('postgres')

describe('ids of one partition', needs(postgres), () => {
  it('the ids of a partition only grow, also if two servers with different clocks produce', async () => {
    await using database = await testDatabase()
    const servers = [
      { storage: await database.open(), skew: 0 },
      { storage: await database.open(), skew: -hour },
    ]
    const queue = 'orders'
    await run((servers[0] as (typeof servers)[0]).storage, {
      op: 'create-queue',
      queue: { name: queue },
      now: noon,
    })
    const ids: string[] = []
    for (let round = 0; round < 10; round++) {
      for (const { storage, skew } of servers) {
        const now = noon + skew + round
        ids.push(...(await run(storage, { op: 'produce', queue, partition: 0, items: newItems(3), now })).ids)
      }
    }
    expect(ids).toEqual(ids.toSorted())
    expect(new Set(ids).size).toBe(60)
  })

  it('ids are unique when two servers produce at the same time', async () => {
    await using database = await testDatabase()
    const servers = [await database.open(), await database.open()]
    const queue = 'orders'
    await run(servers[0] as (typeof servers)[0], { op: 'create-queue', queue: { name: queue }, now: noon })
    const produced = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        run(servers[index % 2] as (typeof servers)[0], {
          op: 'produce',
          queue,
          partition: 0,
          items: newItems(5),
          now: noon + (index % 2) * hour,
        }),
      ),
    )
    const ids = produced.flatMap((each) => each.ids)
    expect(new Set(ids).size).toBe(500)
    for (const each of produced) expect(each.ids).toEqual(each.ids.toSorted())
  })
})

describe('the queue cache of a server', needs(postgres), () => {
  it('a cached queue is not used after another server has changed the queue', async () => {
    await using database = await testDatabase()
    const [here, there] = [await database.open(), await database.open()]
    const at = { queue: 'orders', partition: 0, now: noon } as const
    await run(here, { op: 'create-queue', queue: { name: 'orders', leaseTimeoutUs: hour }, now: noon })
    await run(here, { op: 'produce', ...at, items: newItems(4) })
    const lease = async () => (await run(here, { op: 'lease', ...at, holders: ['w'] }))[0]
    expect((await lease())?.lease.deadline).toBe(noon + hour)

    await run(there, { op: 'update-queue', name: 'orders', changes: { leaseTimeoutUs: 2 * hour }, now: noon })
    const second = await lease()
    expect(second?.lease.deadline).toBe(noon + 2 * hour)

    await run(there, { op: 'update-queue', name: 'orders', changes: { doneRetentionUs: hour }, now: noon })
    const settled = await run(here, { op: 'complete', ...at, ids: [second?.id ?? ''] })
    expect(settled).toMatchObject({ isSettled: true, changes: [{ to: 'done' }] })

    await run(there, { op: 'update-queue', name: 'orders', changes: { isPaused: true }, now: noon })
    expect(await lease()).toBeUndefined()
    await run(there, { op: 'update-queue', name: 'orders', changes: { isPaused: false }, now: noon })
    expect(await lease()).toBeDefined()

    await run(there, { op: 'delete-queue', name: 'orders' })
    await expect(lease()).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' })
    await expect(run(here, { op: 'produce', ...at, items: newItems(1) })).rejects.toMatchObject({
      code: 'QUEUE_NOT_FOUND',
    })
    await run(there, { op: 'create-queue', queue: { name: 'orders', partitions: 2 }, now: noon })
    await run(here, { op: 'produce', ...at, partition: 1, items: newItems(1) })
    expect(await here.verify()).toEqual([])
  })

  it('a server that cached a queue without letters leases its first letter', async () => {
    await using database = await testDatabase()
    const [here, there] = [await database.open(), await database.open()]
    const at = { queue: 'letters', partition: 0, now: noon } as const
    await run(here, { op: 'create-queue', queue: { name: 'letters' }, now: noon })
    expect(await run(here, { op: 'lease', ...at, holders: ['w'] })).toEqual([])
    const items = newItems(1).map((item) => ({ payload: item.payload, sourceId: 'job-1' }))
    await run(there, { op: 'import', ...at, items })
    expect(await run(here, { op: 'lease', ...at, holders: ['w'] })).toHaveLength(1)
  })
})

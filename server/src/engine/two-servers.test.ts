import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { createDatabase } from '../../../tools/services/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { aFailure, anOrigin, bytes, minute, newItems, noon, textOf } from '../../test/make.ts'
import type { Storage } from '../storage/contract/storage.ts'
import { openStorage } from '../storage/open-storage.ts'
import { createEngine } from './create-engine.ts'
import type { Engine } from './engine.ts'

const postgres = await requireService('postgres')

describe('two servers on one database', needs(postgres), () => {
  const opened: { engine: Engine; storage: Storage }[] = []
  const admins: pg.Client[] = []
  afterEach(async () => {
    for (const admin of admins.splice(0)) await admin.end()
    for (const { engine, storage } of opened.splice(0)) {
      await engine.close()
      await storage.close()
    }
  })

  /** Not ticking: what it hears it can only have been told. */
  const aServer = async (url: string, now = () => noon): Promise<Engine> => {
    const storage = await openStorage({ kind: 'postgres', url })
    const engine = createEngine(storage, { clock: { now }, isTicking: false })
    opened.push({ engine, storage })
    return engine
  }
  /** How many servers listen for news on this database. */
  const listening = async (admin: pg.Client): Promise<number[]> => {
    const { rows } = await admin.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database() and query like 'listen %'`,
    )
    return rows.map(({ pid }) => pid)
  }
  /** Two on a database of their own, when both listen for news. */
  const aPair = async (now = () => noon): Promise<{ here: Engine; there: Engine; admin: pg.Client }> => {
    const { url } = await createDatabase()
    const [here, there] = [await aServer(url, now), await aServer(url, now)]
    const admin = new pg.Client({ connectionString: url })
    await admin.connect()
    admins.push(admin)
    await expect.poll(() => listening(admin)).toHaveLength(2)
    return { here, there, admin }
  }

  it('wake each other: a lease waits on one while another produces, retries or imports', async () => {
    const { here, there } = await aPair()
    await here.createQueue({ name: 'orders' })
    const waiting = () => there.lease('orders', { clientId: 'w', countMax: 9, timeoutMs: 20_000 })

    const first = waiting()
    await here.produce('orders', newItems(1, 'produced'))
    const { partition, items } = await first
    expect(items.map(({ payload }) => textOf(payload))).toEqual(['produced-0'])

    const second = waiting()
    await here.retry('orders', partition, [{ id: items[0]?.id ?? '' }])
    expect((await second).items).toMatchObject([{ attempts: 2 }])

    const third = waiting()
    await here.importItems('orders', 0, [{ payload: bytes('imported') }])
    expect((await third).items.map(({ payload }) => textOf(payload))).toEqual(['imported'])

    await here.createQueue({ name: 'dead' })
    const letter = { payload: bytes('redriven'), sourceId: 's1', origin: anOrigin(), failure: aFailure() }
    const [imported] = await here.importItems('dead', 0, [letter])
    const fourth = waiting()
    const letters = [{ letterId: imported?.id ?? '', queue: 'orders' }]
    const how = { isDeadAllowed: false, isCapped: false, actor: 'ann', now: noon }
    await here.write([{ op: 'redrive', letters, ...how }])
    expect((await fourth).items.map(({ payload }) => textOf(payload))).toEqual(['redriven'])
  })

  it('give out what another one stored while nobody waited', async () => {
    const { here, there } = await aPair()
    await here.createQueue({ name: 'orders' })
    const lease = (timeoutMs: number) => there.lease('orders', { clientId: 'w', countMax: 9, timeoutMs })
    await expect(lease(10)).rejects.toThrow('no items')
    // News comes in order: with the second, the first was heard.
    await here.createQueue({ name: 'heard' })
    const heard = there.lease('heard', { clientId: 'w', countMax: 1, timeoutMs: 20_000 })
    await here.produce('orders', newItems(1))
    await here.produce('heard', newItems(1))
    await heard
    expect((await lease(500)).items).toHaveLength(1)
  })

  it('lease from a queue that another one deleted and made again while nobody waited', async () => {
    let ticks = 0
    const ticking = () => noon + ++ticks
    const { here, there } = await aPair(ticking)
    await here.createQueue({ name: 'orders' })
    await here.createQueue({ name: 'heard' })
    const lease = (timeoutMs: number) => there.lease('orders', { clientId: 'w', countMax: 9, timeoutMs })
    await expect(lease(10)).rejects.toThrow('no items')
    const heard = there.lease('heard', { clientId: 'w', countMax: 1, timeoutMs: 20_000 })
    await here.deleteQueue('orders')
    await here.createQueue({ name: 'orders', partitions: 2 })
    await here.produce('heard', newItems(1))
    await heard
    const leased = lease(20_000)
    await here.produce('orders', newItems(1), { partition: 1 })
    expect(await leased).toMatchObject({ partition: 1 })
  })

  it('look for themselves when they were not told', async () => {
    const { url } = await createDatabase()
    const [here, there] = [await aServer(url), await aServer(url)]
    await here.createQueue({ name: 'orders' })
    const lease = (timeoutMs: number) => there.lease('orders', { clientId: 'w', countMax: 9, timeoutMs })
    await expect(lease(10)).rejects.toThrow('no items')
    // Not through the engine, so nobody says anything.
    const { storage } = opened.at(-2) as { storage: Storage }
    await storage.write([{ op: 'produce', queue: 'orders', partition: 0, items: newItems(1), now: noon }])
    await expect(lease(10)).rejects.toThrow('no items')
    await new Promise((resolve) => setTimeout(resolve, 1_001))
    expect((await lease(20_000)).items).toHaveLength(1)
  })

  it('see a queue that another one paused or resumed', async () => {
    const { here, there } = await aPair()
    await here.createQueue({ name: 'orders' })
    await there.updateQueue('orders', { isPaused: true })
    const waiting = there.lease('orders', { clientId: 'w', countMax: 9, timeoutMs: 20_000 })
    await there.stats('orders')
    await here.produce('orders', newItems(1))
    await here.updateQueue('orders', { isPaused: false })
    expect((await waiting).items).toHaveLength(1)
  })

  it('read anew what they know of a queue when they are told to', async () => {
    const { url } = await createDatabase()
    const [here, there] = [await aServer(url), await aServer(url)]
    await here.createQueue({ name: 'orders', leaseUs: minute })
    await there.produce('orders', newItems(1))
    const { partition, items } = await there.lease('orders', { clientId: 'w', countMax: 1, timeoutMs: 5_000 })
    await here.updateQueue('orders', { leaseUs: 5 * minute })
    await here.produce('orders', newItems(1))
    await there.reload('orders')
    expect(await there.extend('orders', partition, [items[0]?.id ?? ''])).toBe(noon + 5 * minute)
    // Found without a word from the other server, because the counts were read anew as well.
    const next = await there.lease('orders', { clientId: 'w', countMax: 1, timeoutMs: 5_000 })
    expect(next.items).toHaveLength(1)
  })

  it('forget a queue that was deleted, also when there is another one of its name', async () => {
    const { url } = await createDatabase()
    const [here, there] = [await aServer(url), await aServer(url)]
    await here.createQueue({ name: 'orders' })
    const waiting = () => there.lease('orders', { clientId: 'w', countMax: 1, timeoutMs: 20_000 })
    /** Not before it waits: one that still looks for its queue is told that there is none. */
    const isWaiting = () =>
      expect.poll(async () => (await there.stats('orders')).leaseWaiting, { timeout: 10_000 }).toBe(1)
    /** Told the same by the reload and by what the other server said, whichever comes first. */
    const refused = (lease: Promise<unknown>) =>
      expect(lease).rejects.toMatchObject({ code: 'QUEUE_SHUTTING_DOWN' })
    const first = refused(waiting())
    await isWaiting()
    await here.deleteQueue('orders')
    await here.createQueue({ name: 'orders', partitions: 2 })
    await there.reload('orders')
    await first
    const places = [await there.produce('orders', newItems(1)), await there.produce('orders', newItems(1))]
    expect(places.map(({ partition }) => partition)).toEqual([0, 1])

    await waiting()
    await waiting()
    const second = refused(waiting())
    await isWaiting()
    await here.deleteQueue('orders')
    await expect(there.reload('orders')).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' })
    await second
  })

  it('hear each other again when the connection that listens was lost', async () => {
    const { here, there, admin } = await aPair()
    const before = await listening(admin)
    await admin.query('select pg_terminate_backend(pid) from unnest($1::int4[]) as pid', [before])
    await expect
      .poll(async () => (await listening(admin)).filter((pid) => !before.includes(pid)), { timeout: 10_000 })
      .toHaveLength(2)
    await here.createQueue({ name: 'orders' })
    const waiting = there.lease('orders', { clientId: 'w', countMax: 9, timeoutMs: 20_000 })
    await there.stats('orders')
    await here.produce('orders', newItems(1))
    expect((await waiting).items).toHaveLength(1)
  })

  it('tell each other that a queue is gone: who waits for its items is told, also when it is made again', async () => {
    let ticks = 0
    const ticking = () => noon + ++ticks
    const { here, there } = await aPair(ticking)
    for (const partitions of [undefined, 1, 3]) {
      await here.createQueue({ name: 'orders' })
      const waiting = there.lease('orders', { clientId: 'w', countMax: 1, timeoutMs: 20_000 })
      await expect.poll(async () => (await there.stats('orders')).leaseWaiting, { timeout: 10_000 }).toBe(1)
      const told = expect(waiting).rejects.toMatchObject({ code: 'QUEUE_SHUTTING_DOWN' })
      await here.deleteQueue('orders')
      if (partitions !== undefined) await here.createQueue({ name: 'orders', partitions })
      await told
      if (partitions === undefined) continue
      // The one that is there now is served as it is.
      const leased = there.lease('orders', { clientId: 'w', countMax: 1, timeoutMs: 20_000 })
      await here.produce('orders', newItems(1), { partition: partitions - 1 })
      expect(await leased).toMatchObject({ partition: partitions - 1 })
      await here.deleteQueue('orders')
    }
  })
})

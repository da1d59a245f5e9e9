import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { createDatabase } from '../../../tools/services/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { aFailure, anOrigin, bytes, minute, newItems, noon, toText } from '../../test/make.ts'
import { toRootId } from '../core/ids/ids.ts'
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

  /** Does not tick, so that it learns of other servers only through announcements. */
  const aServer = async (url: string, now = () => noon): Promise<Engine> => {
    const storage = await openStorage({ kind: 'postgres', url }, { clock: { now } })
    const engine = createEngine(storage, { clock: { now }, isTicking: false })
    opened.push({ engine, storage })
    return engine
  }
  /** The connections that listen for announcements on this database. */
  const listening = async (admin: pg.Client): Promise<number[]> => {
    const { rows } = await admin.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database() and query like 'listen %'`,
    )
    return rows.map(({ pid }) => pid)
  }
  /** Two servers on their own database, once both listen for announcements. */
  const aPair = async (now = () => noon): Promise<{ here: Engine; there: Engine; admin: pg.Client }> => {
    const { url } = await createDatabase()
    const [here, there] = [await aServer(url, now), await aServer(url, now)]
    const admin = new pg.Client({ connectionString: url })
    await admin.connect()
    admins.push(admin)
    await expect.poll(() => listening(admin)).toHaveLength(2)
    return { here, there, admin }
  }

  it('a lease that waits on one server is served when another produces, retries, imports or redrives', async () => {
    const { here, there } = await aPair()
    await here.createQueue({ name: 'orders' })
    const waiting = () => there.lease('orders', { clientId: 'w', countMax: 9, timeoutMs: 20_000 })

    const first = waiting()
    await here.produce('orders', newItems(1, 'produced'))
    const { partition, items } = await first
    expect(items.map(({ payload }) => toText(payload))).toEqual(['produced-0'])

    const second = waiting()
    await here.retry('orders', partition, [{ id: items[0]?.id ?? '' }])
    expect((await second).items).toMatchObject([{ attempts: 2 }])

    const third = waiting()
    await here.importItems('orders', 0, [{ payload: bytes('imported') }])
    expect((await third).items.map(({ payload }) => toText(payload))).toEqual(['imported'])

    await here.createQueue({ name: 'dead' })
    const letter = { payload: bytes('redriven'), sourceId: 's1', origin: anOrigin(), failure: aFailure() }
    const [imported] = await here.importItems('dead', 0, [letter])
    const fourth = waiting()
    const letters = [{ letterId: toRootId(imported?.id ?? ''), queue: 'orders' }]
    const how = { isDeadAllowed: false, isCapped: false, actor: 'ann', now: noon }
    await here.write([{ op: 'redrive', letters, ...how }])
    expect((await fourth).items.map(({ payload }) => toText(payload))).toEqual(['redriven'])
  })

  it('a server leases items that another server stored while no lease waited', async () => {
    const { here, there } = await aPair()
    await here.createQueue({ name: 'orders' })
    const lease = (timeoutMs: number) => there.lease('orders', { clientId: 'w', countMax: 9, timeoutMs })
    await expect(lease(10)).rejects.toThrow('no items')
    // Announcements arrive in order: after the second one, the first was received.
    await here.createQueue({ name: 'heard' })
    const heard = there.lease('heard', { clientId: 'w', countMax: 1, timeoutMs: 20_000 })
    await here.produce('orders', newItems(1))
    await here.produce('heard', newItems(1))
    await heard
    expect((await lease(500)).items).toHaveLength(1)
  })

  it('a server leases from a queue that another server deleted and created again', async () => {
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

  it('a server finds items of another server within a second if the announcement is lost', async () => {
    const { url } = await createDatabase()
    const [here, there] = [await aServer(url), await aServer(url)]
    await here.createQueue({ name: 'orders' })
    const lease = (timeoutMs: number) => there.lease('orders', { clientId: 'w', countMax: 9, timeoutMs })
    await expect(lease(10)).rejects.toThrow('no items')
    // Bypasses the engine, so that nothing is announced.
    const { storage } = opened.at(-2) as { storage: Storage }
    await storage.write([{ op: 'produce', queue: 'orders', partition: 0, items: newItems(1), now: noon }])
    await expect(lease(10)).rejects.toThrow('no items')
    const leasedCount = async () => (await lease(50).catch(() => ({ items: [] }))).items.length
    await expect.poll(leasedCount, { timeout: 10_000 }).toBe(1)
  })

  it('a server serves waiting leases when another server resumes the queue', async () => {
    const { here, there } = await aPair()
    await here.createQueue({ name: 'orders' })
    await there.updateQueue('orders', { isPaused: true })
    const waiting = there.lease('orders', { clientId: 'w', countMax: 9, timeoutMs: 20_000 })
    await there.readStats('orders')
    await here.produce('orders', newItems(1))
    await here.updateQueue('orders', { isPaused: false })
    expect((await waiting).items).toHaveLength(1)
  })

  it('reload applies changes of the queue and its counts by another server', async () => {
    const { url } = await createDatabase()
    const [here, there] = [await aServer(url), await aServer(url)]
    await here.createQueue({ name: 'orders', leaseTimeoutUs: minute })
    await there.produce('orders', newItems(1))
    const { partition, items } = await there.lease('orders', { clientId: 'w', countMax: 1, timeoutMs: 5_000 })
    await here.updateQueue('orders', { leaseTimeoutUs: 5 * minute })
    await here.produce('orders', newItems(1))
    await there.reload('orders')
    expect(await there.extend('orders', partition, [items[0]?.id ?? ''])).toBe(noon + 5 * minute)
    // Found without an announcement, because the reload read the counts, too.
    const next = await there.lease('orders', { clientId: 'w', countMax: 1, timeoutMs: 5_000 })
    expect(next.items).toHaveLength(1)
  })

  it('reload rejects waiting leases of a queue that another server deleted, or deleted and created again', async () => {
    const { url } = await createDatabase()
    const [here, there] = [await aServer(url), await aServer(url)]
    await here.createQueue({ name: 'orders' })
    const waiting = () => there.lease('orders', { clientId: 'w', countMax: 1, timeoutMs: 20_000 })
    /** A lease that still opens its queue would be rejected because the queue does not exist. */
    const isWaiting = () =>
      expect.poll(async () => (await there.readStats('orders')).leaseWaiting, { timeout: 10_000 }).toBe(1)
    /** The reload and the announcement reject it alike, whichever comes first. */
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

  it('servers receive announcements again after their listening connection was lost', async () => {
    const { here, there, admin } = await aPair()
    const before = await listening(admin)
    await admin.query('select pg_terminate_backend(pid) from unnest($1::int4[]) as pid', [before])
    await expect
      .poll(async () => (await listening(admin)).filter((pid) => !before.includes(pid)), { timeout: 10_000 })
      .toHaveLength(2)
    await here.createQueue({ name: 'orders' })
    const waiting = there.lease('orders', { clientId: 'w', countMax: 9, timeoutMs: 20_000 })
    await there.readStats('orders')
    await here.produce('orders', newItems(1))
    expect((await waiting).items).toHaveLength(1)
  })

  it('waiting leases are rejected when another server deletes the queue, also if it creates it again', async () => {
    let ticks = 0
    const ticking = () => noon + ++ticks
    const { here, there } = await aPair(ticking)
    for (const partitions of [undefined, 1, 3]) {
      await here.createQueue({ name: 'orders' })
      const waiting = there.lease('orders', { clientId: 'w', countMax: 1, timeoutMs: 20_000 })
      await expect
        .poll(async () => (await there.readStats('orders')).leaseWaiting, { timeout: 10_000 })
        .toBe(1)
      const rejected = expect(waiting).rejects.toMatchObject({ code: 'QUEUE_SHUTTING_DOWN' })
      await here.deleteQueue('orders')
      if (partitions !== undefined) await here.createQueue({ name: 'orders', partitions })
      await rejected
      if (partitions === undefined) continue
      // Leases use the queue that exists now.
      const leased = there.lease('orders', { clientId: 'w', countMax: 1, timeoutMs: 20_000 })
      await here.produce('orders', newItems(1), { partition: partitions - 1 })
      expect(await leased).toMatchObject({ partition: partitions - 1 })
      await here.deleteQueue('orders')
    }
  })
})

/** Servers on one PostgreSQL whose machines' clocks are five minutes ahead and behind. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { type Clock, toInstant } from '../../src/core/time/instant.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { createLetters } from '../../src/letters/create-letters.ts'
import type { Letters } from '../../src/letters/letters.ts'
import { startServer } from '../../src/server.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { openStorage } from '../../src/storage/open-storage.ts'
import { createReadableLog, testSettings } from '../http/test-server.ts'
import { ann, aSpec, createQueuePair, lettersFrom } from '../letters/test-system.ts'
import { minute, newItems, second } from '../make.ts'
import { type TestDatabase, testDatabase } from '../postgres.ts'

const postgres = await requireService('postgres')

const skewedBy = (us: number): Clock => ({ now: () => toInstant(new Date()) + us })
/** Longer than any delay of the test machine, and much shorter than the skew. */
const toleranceUs = 20 * second

type Server = Readonly<{ storage: Storage; engine: Engine; letters: Letters }>

describe('servers with skewed clocks on one PostgreSQL', needs(postgres), () => {
  let database: TestDatabase
  const servers: Server[] = []
  beforeEach(async () => {
    database = await testDatabase()
  })
  afterEach(async () => {
    for (const { engine, letters, storage } of servers.splice(0)) {
      await letters.close().catch(() => undefined)
      await engine.close()
      await storage.close()
    }
    await database[Symbol.asyncDispose]()
  })

  /** Its loops do not run: a test calls what they would do. */
  const start = async (machineClock: Clock, clock?: Clock): Promise<Server> => {
    const storage = await openStorage({ kind: 'postgres', url: database.url }, { machineClock })
    const engine = createEngine(storage, { clock: clock ?? storage.clock, isTicking: false })
    const owner = `server ${servers.length}`
    const letters = createLetters({ storage, engine, clock: clock ?? storage.clock, owner })
    const server = { storage, engine, letters }
    servers.push(server)
    return server
  }
  const databaseNow = async (): Promise<number> => {
    const text = 'select (extract(epoch from clock_timestamp()) * 1000000)::int8::text as now'
    const [row] = await database.rows<{ now: string }>(text)
    return Number(row?.now)
  }
  /** As if this time had passed for the lock of the campaign. */
  const letLockAge = (us: number) =>
    database.rows(`update redrive.locks set deadline = deadline - ${us} where name like 'campaign/%'`)
  const workUntilSent = async ({ letters }: Server, id: string): Promise<void> => {
    while ((await letters.campaigns.get(id))?.counts.sent === 0) await letters.passes.campaigns()
  }

  it('every server goes by the clock of the database', async () => {
    for (const offset of [5 * minute, -5 * minute]) {
      const { storage } = await start(skewedBy(offset))
      expect(Math.abs(storage.clock.now() - (await databaseNow()))).toBeLessThan(toleranceUs)
      expect(Math.abs((storage.clock.readMachineOffsetUs() ?? 0) - offset)).toBeLessThan(toleranceUs)
    }
  })

  it('no server ends a lease of another server early, so no item has two holders', async () => {
    const ahead = await start(skewedBy(5 * minute))
    const behind = await start(skewedBy(-5 * minute))
    await behind.engine.createQueue({ name: 'orders', leaseTimeoutUs: 2 * minute })
    await behind.engine.produce('orders', newItems(20))
    const lease = ({ engine }: Server, clientId: string) =>
      engine.lease('orders', { clientId, countMax: 10, timeoutMs: 5_000 })
    const first = await lease(behind, 'worker of the server behind')
    const other = await lease(ahead, 'worker of the server ahead')
    for (const { engine } of [ahead, behind, ahead]) await engine.advance()
    const leased = await behind.storage.listItems({ queue: 'orders', countMax: 100 })
    expect(leased.map(({ state }) => state)).toEqual(Array(20).fill('leased'))
    expect(new Set([...first.items, ...other.items].map(({ id }) => id)).size).toBe(20)
    const expected = (await databaseNow()) + 2 * minute
    for (const { lease } of [...first.items, ...other.items]) {
      expect(Math.abs(lease.deadline - expected)).toBeLessThan(toleranceUs)
    }
  })

  it('a server whose own time is wrong ends no lease early and takes no lock', async () => {
    const right = await start(skewedBy(0))
    const wrong = await start(skewedBy(0), skewedBy(5 * minute))
    await right.engine.createQueue({ name: 'orders', leaseTimeoutUs: 2 * minute })
    await right.engine.produce('orders', newItems(1))
    await right.engine.lease('orders', { clientId: 'w', countMax: 1, timeoutMs: 5_000 })
    await wrong.engine.advance()
    const [item] = await right.storage.listItems({ queue: 'orders', countMax: 1 })
    expect(item).toMatchObject({ state: 'leased', attempts: 1 })

    const acquire = ({ engine }: Server, now: number, owner: string) =>
      engine.write([{ op: 'acquire-lock', name: 'a lock', owner, now, deadline: now + 15 * second }])
    const now = right.storage.clock.now()
    expect(await acquire(right, now, 'right')).toEqual([{ name: 'a lock', token: 1 }])
    expect(await acquire(wrong, now + 5 * minute, 'wrong')).toEqual([null])
    await right.engine.write([{ op: 'release-lock', lock: { name: 'a lock', token: 1 } }])
    expect(await acquire(wrong, now + 5 * minute, 'wrong')).toEqual([{ name: 'a lock', token: 2 }])
    const [row] = await database.rows<{ deadline: string }>(`select deadline::text from redrive.locks`)
    expect(Number(row?.deadline)).toBeLessThan((await databaseNow()) + 15 * second)
  })

  it('the campaign of a server that died continues on another server after 15 seconds', async () => {
    const ahead = await start(skewedBy(5 * minute))
    const behind = await start(skewedBy(-5 * minute))
    const { queue, deadQueue } = await createQueuePair(ahead)
    await ahead.letters.capture(deadQueue, lettersFrom(queue, 3_000))
    const { id } = await ahead.letters.campaigns.create(aSpec(deadQueue), ann)
    const sent = async () => (await behind.letters.campaigns.get(id))?.counts.sent
    await workUntilSent(ahead, id)
    expect(await sent()).toBe(1_000)
    // The server that is ahead makes no more steps, and does not release its lock.
    await behind.letters.passes.campaigns()
    expect(await sent()).toBe(1_000)
    await letLockAge(15 * second)
    const other = await start(skewedBy(-5 * minute))
    while (await other.letters.passes.campaigns()) {
      // Until no step is left.
    }
    expect(await sent()).toBe(3_000)
  })

  it('a campaign of all letters contains the letters that a server ahead has captured', async () => {
    const ahead = await start(skewedBy(5 * minute))
    const behind = await start(skewedBy(-5 * minute))
    const { queue, deadQueue } = await createQueuePair(ahead)
    await ahead.letters.capture(deadQueue, lettersFrom(queue, 40))
    const { id } = await behind.letters.campaigns.create(aSpec(deadQueue), ann)
    await workUntilSent(behind, id)
    expect(await behind.letters.campaigns.get(id)).toMatchObject({ size: 40, counts: { sent: 40 } })
  })

  it('a skewed clock is a metric, a warning of /health and one line of the log, and the server is ready', async () => {
    const { log, lines } = createReadableLog()
    const skew = { us: -5 * minute }
    const server = await startServer({
      settings: testSettings(),
      store: { kind: 'postgres', url: database.url },
      log,
      machineClock: { now: () => toInstant(new Date()) + skew.us },
    })
    try {
      const read = async (path: string) => {
        const response = await fetch(server.url + path)
        return { status: response.status, text: await response.text() }
      }
      const health = async () => JSON.parse((await read('/health')).text)
      expect((await read('/health')).status).toBe(200)
      expect((await read('/readyz')).status).toBe(200)
      expect(await health()).toMatchObject({
        status: 'warn',
        checks: {
          'queues:storage': [{ status: 'pass' }],
          'clock:offset': [
            {
              status: 'warn',
              output: expect.stringMatching(
                /^the clock of this machine is \d+\.\d s behind the clock of the database$/,
              ),
            },
          ],
        },
      })
      const metric = /^redrive_clock_offset_seconds (\S+)$/m.exec((await read('/metrics')).text)
      expect(Math.abs(Number(metric?.[1]) + 300)).toBeLessThan(20)
      const logged = (text: string) => lines.filter(({ msg }) => msg.includes(text)).length
      expect(logged('behind the clock of the database')).toBe(1)
      skew.us = 0
      await expect.poll(async () => logged('right again'), { timeout: 20_000 }).toBe(1)
      expect(await health()).toMatchObject({ status: 'pass' })
      expect(logged('behind the clock of the database')).toBe(1)
    } finally {
      await server.stop(0)
    }
  })
})

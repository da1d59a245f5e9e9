import { expect, it } from 'vitest'
import { usPerSecond } from '../../../src/core/time/instant.ts'
import { type Heartbeat, readSilenceUs } from '../../../src/core/watching/worker.ts'
import { errorsPerTypeMax } from '../../../src/storage/shared/workers/plan-heartbeats.ts'
import { noon } from '../../make.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { describeStores } from '../support/test-stores.ts'

const second = usPerSecond
const day = 86_400 * second
const workersMax = 100_000

describeStores('the registry of workers', (given) => {
  let tests = 0
  /** Workers outlive a test, so each test has its own type, and its own day. */
  const aTest = () => {
    const start = noon + ++tests * day
    const type = `type-${tests}`
    const beat = (atUs: number, changes: Partial<Heartbeat> = {}): Heartbeat => ({
      namespace: '_system',
      type,
      instanceId: 'one',
      source: 'http',
      status: 'RUNNING',
      receivedAt: start + atUs,
      sentAt: start + atUs,
      lag: null,
      ...changes,
    })
    const record = (atUs: number, heartbeats: readonly Heartbeat[], max = workersMax) =>
      given.run({
        op: 'record-heartbeats',
        heartbeats,
        observed: ['http'],
        now: start + atUs,
        workersMax: max,
      })
    const list = () => given.storage.listWorkers({ type, countMax: 1_000 })
    return { start, type, beat, record, list }
  }
  const readClock = async (name: string) =>
    (await given.storage.readWatchRecords()).clocks.find((clock) => clock.name === name)

  it('a worker is stored with everything that its heartbeats report', async () => {
    const { start, type, beat, record, list } = aTest()
    await record(0, [beat(0)])
    const heartbeat = beat(5 * second, {
      lastMessageAt: start + second,
      lag: Number.MAX_SAFE_INTEGER,
      retries: { TypeError: 2 },
    })
    expect(await record(6 * second, [heartbeat])).toEqual({ changed: 1, refused: [] })
    const clock = await readClock('http')
    expect(await list()).toEqual([
      {
        namespace: '_system',
        type,
        instanceId: 'one',
        source: 'http',
        status: 'RUNNING',
        firstSeenAt: start,
        lastSeenAt: start + 5 * second,
        lastSeenTick: start + 5 * second - (clock?.pausedUs ?? 0),
        statusSince: start,
        sentAt: start + 5 * second,
        lastMessageAt: start + second,
        idleFrom: start + second,
        lag: Number.MAX_SAFE_INTEGER,
        retries: { TypeError: 2 },
      },
    ])
  })

  it('heartbeats of one batch take effect in their order', async () => {
    const { start, beat, record, list } = aTest()
    await record(9 * second, [
      beat(0),
      beat(second, { status: 'SHUTTING_DOWN' }),
      beat(2 * second, { status: 'STOPPED' }),
    ])
    expect(await list()).toMatchObject([
      { status: 'STOPPED', firstSeenAt: start, statusSince: start + 2 * second },
    ])
  })

  it('a heartbeat that arrives after a newer one changes nothing', async () => {
    const { start, beat, record, list } = aTest()
    await record(9 * second, [beat(8 * second)])
    expect(await record(9 * second, [beat(7 * second)])).toEqual({ changed: 0, refused: [] })
    expect(await list()).toMatchObject([{ lastSeenAt: start + 8 * second }])
  })

  it('two batches of one worker at the same time are written one after the other', async () => {
    const { start, beat, record, list } = aTest()
    await Promise.all(
      Array.from({ length: 8 }, (_, at) =>
        record(9 * second, [beat(at * second, { retries: { A: at + 1 }, status: 'SHUTTING_DOWN' })]),
      ),
    )
    expect(await list()).toMatchObject([{ lastSeenAt: start + 7 * second, retries: { A: 8 } }])
    const [worker] = await list()
    expect(worker?.statusSince).toBeLessThanOrEqual(worker?.lastSeenAt ?? 0)
  })

  it('the clock of a source stands still while nobody observed it', async () => {
    const { beat, record, list } = aTest()
    await record(0, [beat(0)])
    await record(20 * second, [])
    const [worker] = await list()
    if (worker === undefined) throw new Error('the worker is missing')
    expect(readSilenceUs(worker, await readClock('http'))).toBe(20 * second)
    await record(3_600 * second, [])
    expect(readSilenceUs(worker, await readClock('http'))).toBe(20 * second)
    await record(3_630 * second, [])
    expect(readSilenceUs(worker, await readClock('http'))).toBe(50 * second)
  })

  it('unknown workers beyond the limit are refused, and known ones are recorded', async () => {
    const { beat, record, list } = aTest()
    await record(0, [beat(0)])
    const other = beat(second, { instanceId: 'two' })
    expect(await record(second, [other, beat(second)], 1)).toEqual({ changed: 1, refused: [0] })
    expect((await list()).map(({ instanceId }) => instanceId)).toEqual(['one'])
  })

  it('a list continues behind the last worker of a page, in byte order', async () => {
    const { type, beat, record } = aTest()
    const names = ['b', 'B', 'a:1', 'é', 'a', '10', '9']
    await record(
      0,
      names.map((instanceId) => beat(0, { instanceId })),
    )
    const found: string[] = []
    for (let after: Heartbeat | undefined; ; ) {
      const query = { type, countMax: 2, ...(after !== undefined && { after }) }
      const page = await given.storage.listWorkers(query)
      const last = page.at(-1)
      if (last === undefined) break
      found.push(...page.map(({ instanceId }) => instanceId))
      after = beat(0, { instanceId: last.instanceId })
    }
    expect(found).toEqual(['10', '9', 'B', 'a', 'a:1', 'b', 'é'])
  })

  it('a list has the workers of the wanted namespaces only', async () => {
    const { type, beat, record } = aTest()
    await record(0, [beat(0), beat(0, { namespace: 'shop' })])
    const list = (namespaces: readonly string[]) =>
      given.storage.listWorkers({ type, namespaces, countMax: 10 })
    expect(await list(['shop'])).toMatchObject([{ namespace: 'shop' }])
    expect(await list([])).toEqual([])
  })

  it('a worker is forgotten unless it sent a heartbeat since it was read', async () => {
    const { start, type, beat, record, list } = aTest()
    await record(9 * second, [beat(8 * second)])
    const worker = { namespace: '_system', type, instanceId: 'one' }
    const forget = (lastSeenAt?: number) =>
      given.run({
        op: 'forget-workers',
        workers: [{ ...worker, ...(lastSeenAt !== undefined && { lastSeenAt }) }],
      })
    expect(await forget(start + 7 * second)).toEqual({ forgotten: 0 })
    expect(await forget(start + 8 * second)).toEqual({ forgotten: 1 })
    expect(await forget()).toEqual({ forgotten: 0 })
    expect(await list()).toEqual([])
  })

  it('the audit row of a forgotten worker is written only if there was one', async () => {
    const { start, type, beat, record } = aTest()
    await record(0, [beat(0)])
    const target = `${type}/one`
    const forget = () =>
      given.run({
        op: 'forget-workers',
        workers: [{ namespace: '_system', type, instanceId: 'one' }],
        audit: {
          at: start,
          actor: 'ann',
          action: 'worker.forget',
          target,
          reason: 'gone',
          requestId: 'r',
          details: {},
        },
      })
    await forget()
    await forget()
    expect(await given.storage.listAudit({ target, countMax: 10 })).toMatchObject([
      { actor: 'ann', action: 'worker.forget', reason: 'gone' },
    ])
  })

  it('retries are summed by type and error, and too many errors are counted together', async () => {
    const { type, beat, record } = aTest()
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`Error${at}`, 1]))
    await record(0, [beat(0, { retries: many }), beat(0, { instanceId: 'two', retries: { Error0: 4 } })])
    await record(second, [beat(second, { retries: { ...many, Error0: 3 } })])
    const { retries } = await given.storage.readWatchRecords()
    const own = retries.filter((each) => each.type === type)
    expect(own).toHaveLength(errorsPerTypeMax + 1)
    expect(own.find(({ error }) => error === 'Error0')?.count).toBe(1 + 4 + 2)
    expect(own.find(({ error }) => error === '(others)')?.count).toBe(60 - errorsPerTypeMax)
  })

  it('totals of events are added up by name and label', async () => {
    const name = `test-${++tests}`
    const add = (label: string, count: number) =>
      given.run({ op: 'add-event-totals', totals: [{ name, label, count }] })
    await Promise.all([add('a', 1), add('a', 2), add('b', 5)])
    const { totals } = await given.storage.readWatchRecords()
    expect(totals.filter((total) => total.name === name)).toEqual([
      { name, label: 'a', count: 3 },
      { name, label: 'b', count: 5 },
    ])
  })

  it('texts that a store cannot keep are refused', async () => {
    const { beat, record } = aTest()
    await expectRefusal(record(0, [beat(0, { instanceId: 'a\0b' })]), 'BAD_REQUEST')
    await expectRefusal(record(0, [beat(0, { retries: { '\ud800': 1 } })]), 'BAD_REQUEST')
  })
})

import { afterEach, expect, it } from 'vitest'
import { convertToUuid } from '../../src/core/ids/ksuid.ts'
import { expectRefusal } from '../conformance/support/expect-refusal.ts'
import { describeTheseStores } from '../conformance/support/test-stores.ts'
import { aFailure, bytes, minute, noon, toText } from '../make.ts'
import {
  ann,
  captured,
  consume,
  createQueuePair,
  createTestSystem,
  lettersFrom,
  type TestSystem,
} from './test-system.ts'

describeTheseStores(['SQLite memory', 'PostgreSQL'], 'dead letters', (given) => {
  let world: TestSystem
  const begin = async (dead = {}) => {
    world = createTestSystem(given.storage)
    return createQueuePair(world, dead)
  }
  afterEach(() => world?.close())
  const actions = async (target: string) =>
    (await given.storage.listAudit({ target, countMax: 100 })).map(
      ({ action, actor }) => `${actor} ${action}`,
    )
  const plainly = { target: null, edit: null, isDeadAllowed: false, isCapped: true }

  it('a letter that is sent several times is captured once', async () => {
    const { queue, deadQueue } = await begin()
    const given = lettersFrom(queue, 3)
    const first = await world.letters.capture(deadQueue, [...given, ...given.slice(0, 1)], ann)
    expect(first.map(({ isNew }) => isNew)).toEqual([true, true, true, false])
    expect(first[3]?.letterId).toBe(first[0]?.letterId)
    const again = await world.letters.capture(deadQueue, given, ann)
    expect(again).toEqual(first.slice(0, 3).map(({ letterId }) => ({ letterId, isNew: false })))
    expect(await actions(deadQueue)).toEqual(['ann letters.capture', 'ann letters.capture'])
    expect(await world.letters.count({ filter: { queues: [deadQueue] }, by: ['state'] })).toEqual([
      { state: 'waiting', count: 3 },
    ])
  })

  it('concurrent captures share a few transactions', async () => {
    const { queue, deadQueue } = await begin()
    let writes = 0
    const counting = new Proxy(given.storage, {
      get: (storage, name) => {
        if (name === 'write') writes++
        const value = Reflect.get(storage, name)
        return typeof value === 'function' ? value.bind(storage) : value
      },
    })
    const { letters } = world.startServer(counting)
    const all = await Promise.all(
      lettersFrom(queue, 200).map((letter, index) =>
        letters.capture(deadQueue, [letter, { ...letter, sourceId: `same-${index % 2}` }]),
      ),
    )
    expect(new Set(all.flat().map(({ letterId }) => letterId)).size).toBe(202)
    expect(all.flat().filter(({ isNew }) => isNew)).toHaveLength(202)
    expect(writes).toBeLessThan(40)
  })

  it('letters without a source id are always captured as new letters', async () => {
    const { queue, deadQueue } = await begin()
    const [letter] = lettersFrom(queue, 1, { sourceId: null })
    if (letter === undefined) throw new Error('there is one')
    const both = await world.letters.capture(deadQueue, [letter, letter])
    expect(both.map(({ isNew }) => isNew)).toEqual([true, true])
  })

  it('a capture for an unknown queue is refused and works once the queue exists', async () => {
    const { queue } = await begin()
    await expectRefusal(world.letters.capture('later', lettersFrom(queue, 1)), 'QUEUE_NOT_FOUND')
    await given.queue({ name: 'later' })
    expect(await world.letters.capture('later', lettersFrom(queue, 1))).toMatchObject([{ isNew: true }])
  })

  it('captures continue after their queue is created again with fewer partitions', async () => {
    const { queue } = await begin()
    await given.queue({ name: 'renewed', partitions: 3 })
    const [a, b, c] = lettersFrom(queue, 3)
    if (a === undefined || b === undefined || c === undefined) throw new Error('there are three')
    await world.letters.capture('renewed', [a])
    await given.run({ op: 'delete-queue', name: 'renewed', isForced: true })
    await given.queue({ name: 'renewed', partitions: 1 })
    expect(await world.letters.capture('renewed', [b])).toMatchObject([{ isNew: true }])
    expect(await world.letters.capture('renewed', [c])).toMatchObject([{ isNew: true }])
  })

  it('captures of many letters are written in steps of 1,000', async () => {
    const { queue, deadQueue } = await begin()
    const all = await world.letters.capture(deadQueue, lettersFrom(queue, 2_500), ann)
    expect(new Set(all.map(({ letterId }) => letterId)).size).toBe(2_500)
    expect(await actions(deadQueue)).toEqual(['ann letters.capture'])
  })

  it('a redrive wakes a lease that waits in the target queue', async () => {
    const { queue, deadQueue } = await begin()
    const [id = ''] = await captured(world, deadQueue, lettersFrom(queue, 1))
    const lease = world.engine.lease(queue, { clientId: 'w', countMax: 1, timeoutMs: 10_000 })
    await expect.poll(async () => (await world.engine.readStats(queue)).leaseWaiting).toBe(1)
    await world.letters.redrive([id], plainly, ann)
    const { items } = await lease
    expect(items.map(({ payload }) => toText(payload))).toEqual(['order 0'])
  })

  it('a letter is resolved when its redrive completes, and returns when the redrive dies', async () => {
    const { queue, deadQueue } = await begin()
    const [good = '', bad = ''] = await captured(world, deadQueue, lettersFrom(queue, 2))
    expect(await world.letters.redrive([good, bad], plainly, ann)).toMatchObject([
      { letterId: good, isStarted: true, queue },
      { letterId: bad, isStarted: true, queue },
    ])
    expect(await world.letters.redrive([good], plainly, ann)).toEqual([
      { letterId: good, isStarted: false, refusal: 'redriving' },
    ])
    await consume(world, queue, (payload) => payload === 'order 0')
    const resolved = await world.letters.find(good)
    expect(resolved?.item).toMatchObject({
      state: 'done',
      letter: { redrives: [{ outcome: 'resolved', actor: 'ann' }] },
    })
    expect((await world.letters.find(bad))?.item).toMatchObject({
      state: 'waiting',
      retryCount: 1,
      letter: { redrives: [{ outcome: 'failed' }] },
    })
    const details = { target: null, isDeadAllowed: false, queue, number: 1, letters: 2 }
    expect(resolved?.audit.map(({ action, reason, details }) => ({ action, reason, details }))).toEqual([
      { action: 'letter.redrive', reason: 'INC-7 is fixed', details },
    ])
  })

  it('redrive results are in the order of the ids, and one refusal does not affect the others', async () => {
    const { queue, deadQueue } = await begin()
    const [a = '', b = ''] = await captured(world, deadQueue, lettersFrom(queue, 2))
    const unknown = '0ujtsYcgvSTl8PAuAdqWYSMnLOv'
    const results = await world.letters.redrive([b, unknown, a, b], plainly, ann)
    expect(results.map(({ letterId, isStarted }) => [letterId, isStarted])).toEqual([
      [b, true],
      [unknown, false],
      [a, true],
      [b, true],
    ])
    expect(await consume(world, queue)).toHaveLength(2)
    await expectRefusal(world.letters.redrive(Array(10_001).fill(a), plainly, ann), 'BAD_REQUEST')
  })

  it('unknown letter ids are reported as missing and write no audit row', async () => {
    await begin()
    const odd = ['', 'x', '\0', '\ud800', 'z'.repeat(27), 'é'.repeat(27), 'x'.repeat(100_000)]
    const before = await given.storage.listAudit({ countMax: 1 })
    expect((await world.letters.redrive(odd, plainly, ann)).every((each) => !each.isStarted)).toBe(true)
    expect((await world.letters.discard(odd, ann)).map(({ refusal }) => refusal)).toEqual(
      odd.map(() => 'missing'),
    )
    expect((await world.letters.restore(odd, ann)).map(({ refusal }) => refusal)).toEqual(
      odd.map(() => 'missing'),
    )
    for (const id of odd) {
      expect(await world.letters.find(id)).toBeNull()
      await expectRefusal(world.letters.edit(id, {}, ann), 'LETTER_NOT_FOUND')
    }
    expect(await given.storage.listAudit({ countMax: 1 })).toEqual(before)
  })

  it('each of thousands of redriven letters gets an audit row', async () => {
    const { queue, deadQueue } = await begin()
    const ids = await captured(world, deadQueue, lettersFrom(queue, 1_500))
    const results = await world.letters.redrive(ids, plainly, ann)
    expect(results.filter(({ isStarted }) => isStarted)).toHaveLength(1_500)
    expect(await actions(ids.at(-1) ?? '')).toEqual(['ann letter.redrive'])
    expect(await consume(world, queue)).toHaveLength(1_500)
  })

  it('an edited letter is sent, and its original is kept', async () => {
    const { queue, deadQueue } = await begin()
    const [id = ''] = await captured(world, deadQueue, lettersFrom(queue, 1))
    const number = await world.letters.edit(id, { payload: bytes('corrected') }, ann)
    expect(await world.letters.redrive([id], { ...plainly, edit: number + 1 }, ann)).toEqual([
      { letterId: id, isStarted: false, refusal: 'no-edit' },
    ])
    await world.letters.redrive([id], { ...plainly, edit: number }, ann)
    expect(await consume(world, queue)).toEqual(['corrected'])
    const detail = await world.letters.find(id)
    expect(toText(detail?.item.payload ?? null)).toBe('order 0')
    expect(detail?.edits).toMatchObject([
      { number, actor: 'ann', payload: bytes('corrected'), key: bytes('key 0') },
    ])
    expect(await actions(id)).toEqual(['ann letter.redrive', 'ann letter.edit'])
    await expectRefusal(world.letters.edit('0ujtsYcgvSTl8PAuAdqWYSMnLOv', {}, ann), 'LETTER_NOT_FOUND')
  })

  it('a discarded letter keeps its reason and is not captured again', async () => {
    const { queue, deadQueue } = await begin()
    const [id = ''] = await captured(world, deadQueue, lettersFrom(queue, 1))
    expect(await world.letters.discard([id], ann)).toEqual([
      { letterId: id, isDiscarded: true, refusal: null },
    ])
    expect((await world.letters.find(id))?.item).toMatchObject({
      state: 'discarded',
      letter: { discardReason: 'INC-7 is fixed' },
    })
    expect(await world.letters.capture(deadQueue, lettersFrom(queue, 1))).toEqual([
      { letterId: id, isNew: false },
    ])
    expect(await world.letters.redrive([id], plainly, ann)).toMatchObject([{ refusal: 'discarded' }])
    expect(await actions(id)).toEqual(['ann letter.discard'])
  })

  it('letters are found only by root id and UUID', async () => {
    const { queue, deadQueue } = await begin()
    const [id = ''] = await captured(world, deadQueue, lettersFrom(queue, 1))
    const uuid = convertToUuid(id)
    const unknown = '0ujtsYcgvSTl8PAuAdqWYSMnLOv'
    const asked = [id, uuid, uuid.toUpperCase(), unknown, convertToUuid(unknown), 'x', '']
    expect(await world.letters.resolveIds(asked)).toEqual([id, id, id, null, null, null, null])
    expect((await world.letters.find(uuid))?.item.rootId).toBe(id)
    expect(await world.letters.find(unknown)).toBeNull()
    expect(await world.letters.find('nonsense')).toBeNull()
  })

  it('a list includes the total if the counts know it', async () => {
    const { queue, deadQueue } = await begin()
    await captured(world, deadQueue, lettersFrom(queue, 30))
    const query = { order: 'deadLetteredAt', isDescending: true, countMax: 7, bytes: 'none' } as const
    const filter = { queues: [deadQueue] }
    const seen: string[] = []
    let page = await world.letters.list({ ...query, filter })
    expect(page.total).toBe(30)
    for (;;) {
      seen.push(...page.letters.map(({ sourceId }) => sourceId ?? ''))
      if (page.next === null) break
      page = await world.letters.list({ ...query, filter, after: page.next })
    }
    expect(seen).toEqual(Array.from({ length: 30 }, (_, index) => `${queue}/${29 - index}`))
    const found = await world.letters.list({ ...query, filter: { ...filter, text: 'CARD 17' } })
    expect(found).toMatchObject({ total: null, next: null })
    expect(found.letters.map(({ sourceId }) => sourceId)).toEqual([`${queue}/17`])
    expect(await world.letters.list({ ...query, filter: { ...filter, states: ['dead'] } })).toEqual({
      letters: [],
      examinedCount: 0,
      next: null,
      total: 0,
    })
  })

  it('letters are grouped by cause', async () => {
    const { queue, deadQueue } = await begin()
    const other = lettersFrom(queue, 2, { failure: aFailure({ errorClass: 'Timeout', message: 'too slow' }) })
    await captured(world, deadQueue, lettersFrom(queue, 5))
    await captured(
      world,
      deadQueue,
      other.map((letter, index) => ({ ...letter, sourceId: `other-${index}` })),
    )
    const query = { filter: { queues: [deadQueue] }, countMax: 10, isEmptyToo: false }
    expect(await world.letters.listGroups(query)).toMatchObject([
      { count: 5, errorClass: 'com.example.PaymentRefused', title: 'card <n> was refused' },
      { count: 2, errorClass: 'Timeout' },
    ])
  })

  it('an auto policy redrives letters with backoff and jitter until they are DEAD', async () => {
    const backoff = { kind: 'exponential', delayUsMin: minute, delayUsMax: 60 * minute, jitter: 0.2 } as const
    const { queue, deadQueue } = await begin({ redrive: { mode: 'auto', redrivesMax: 2, backoff } })
    const manual = await createQueuePair(world)
    const letters = lettersFrom(queue, 3).map((letter) => ({ ...letter, deadLetteredAt: noon }))
    await captured(world, deadQueue, letters)
    const [byHand = ''] = await captured(world, manual.deadQueue, lettersFrom(manual.queue, 1))
    const another = world.startServer().letters
    const due = async () => {
      await Promise.all([world.letters.passes.auto(), another.passes.auto()])
      return consume(world, queue, () => false)
    }
    expect(await due()).toEqual([])
    world.tick(minute * 1.2)
    // Both servers searched; each letter was sent once.
    expect((await due()).sort()).toEqual(['order 0', 'order 1', 'order 2'])
    expect(await due()).toEqual([])
    const page = await world.letters.list({
      filter: { queues: [deadQueue] },
      order: 'deadLetteredAt',
      isDescending: false,
      countMax: 9,
      bytes: 'none',
    })
    for (const { letter } of page.letters) {
      const waitUs = (letter?.nextRedriveAt ?? 0) - world.now()
      expect(waitUs).toBeGreaterThanOrEqual(2 * minute * 0.8)
      expect(waitUs).toBeLessThanOrEqual(2 * minute * 1.2)
    }
    world.tick(minute * 2.4)
    expect(await due()).toHaveLength(3)
    world.tick(600 * minute)
    expect(await due()).toEqual([])
    expect(
      await world.letters.count({ filter: { queues: [deadQueue] }, by: ['state', 'retryCount'] }),
    ).toEqual([{ state: 'dead', retryCount: 2, count: 3 }])
    expect((await world.letters.find(byHand))?.item.retryCount).toBe(0)
    const rows = await given.storage.listAudit({
      target: deadQueue,
      action: 'letters.auto-redrive',
      countMax: 9,
    })
    expect(rows.every(({ actor }) => actor === 'policy')).toBe(true)
    // As many as were sent, whichever server did it: three letters, twice.
    expect(rows.reduce((sum, { details }) => sum + (details.letters as number), 0)).toBe(6)
    for (const { rootId } of page.letters) {
      const detail = await world.letters.find(rootId)
      expect(detail?.audit.map(({ actor, action }) => `${actor} ${action}`)).toEqual([
        'policy letter.redrive',
        'policy letter.redrive',
      ])
    }
  })

  it('switching a queue to auto schedules its waiting letters; switching back unschedules them', async () => {
    const { queue, deadQueue } = await begin()
    const ids = await captured(world, deadQueue, lettersFrom(queue, 1_200))
    const [byHand = ''] = ids
    const backoff = { kind: 'fixed', delayUs: minute, jitter: 0 } as const
    const next = async () => (await world.letters.find(byHand))?.item.letter?.nextRedriveAt
    const pass = async () => {
      // So long it may take until a changed policy is seen.
      world.tick(5_000_000)
      while (await world.letters.passes.auto());
    }
    await pass()
    expect(await next()).toBeNull()
    await world.engine.updateQueue(deadQueue, { redrive: { mode: 'auto', redrivesMax: 3, backoff } }, ann)
    await pass()
    expect(await next()).toBe(world.now() + minute)
    await world.engine.updateQueue(deadQueue, { redrive: { mode: 'manual', redrivesMax: 3, backoff } }, ann)
    world.tick(2 * minute)
    await pass()
    expect(await next()).toBeNull()
    expect(await consume(world, queue)).toEqual([])
    await world.engine.updateQueue(deadQueue, { redrive: { mode: 'auto', redrivesMax: 3, backoff } }, ann)
    await pass()
    world.tick(2 * minute)
    await pass()
    expect(await consume(world, queue)).toHaveLength(1_200)
  })

  it('due letters that cannot be sent do not block the others', async () => {
    const backoff = { kind: 'fixed', delayUs: minute, jitter: 0 } as const
    const { queue, deadQueue } = await begin({ redrive: { mode: 'auto', redrivesMax: 3, backoff } })
    const gone = lettersFrom('gone', 5, { deadLetteredAt: noon - 10 })
    await captured(world, deadQueue, [...gone, ...lettersFrom(queue, 2)])
    world.tick(2 * minute)
    for (let passes = 0; passes < 5; passes++) await world.letters.passes.auto()
    expect(await consume(world, queue)).toHaveLength(2)
    const rows = async () => (await given.storage.listAudit({ target: deadQueue, countMax: 99 })).length
    expect(await rows()).toBe(1)
    for (let passes = 0; passes < 5; passes++) {
      // They are examined once a minute. A pass that sends nothing writes no audit row.
      world.tick(2 * minute)
      await world.letters.passes.auto()
    }
    expect(await rows()).toBe(1)
  })
})

import { expect, it } from 'vitest'
import { aFailure, bytes, minute, noon } from '../../make.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('a redrive to Kafka', (given) => {
  let clusters = 0

  /** Letters whose redriven items are leased from a replay queue, as a sender has them. */
  const leasedRedrives = async (count: number) => {
    const deadQueue = await given.queue()
    const out = await given.queue({ leaseTimeoutUs: minute })
    const cluster = `cluster-${++clusters}`
    const imported = await given.run({
      op: 'import',
      queue: deadQueue,
      partition: 0,
      items: Array.from({ length: count }, (_, n) => ({
        payload: bytes(`letter ${n}`),
        sourceId: `s${n}`,
        origin: {
          kind: 'kafka',
          name: 'orders',
          partition: 0,
          id: String(n),
          group: 'g',
          cluster,
          createdAt: noon,
        },
        failure: aFailure(),
      })),
      now: noon,
    })
    const letterIds = imported.map(({ id }): string => id ?? '')
    await given.run({
      op: 'redrive',
      letters: letterIds.map((letterId) => ({ letterId, queue: out })),
      isDeadAllowed: false,
      isCapped: false,
      actor: 'ann',
      now: noon,
    })
    const holders = letterIds.map(() => 'sender')
    const items = await given.run({ op: 'lease', queue: out, partition: 0, holders, now: noon })
    await given.run({
      op: 'announce-kafka-replays',
      replays: items.map(({ letterId }, at) => ({
        letterId: letterId ?? '',
        number: 1,
        cluster,
        topic: 'orders',
        group: 'g',
        contentHash: `hash ${at}`,
      })),
      now: noon,
    })
    const record = (at: number, partition = 0) => ({
      itemId: items[at]?.id ?? '',
      letterId: items[at]?.letterId ?? '',
      number: 1,
      partition,
      offset: at,
    })
    const send = (replays: readonly ReturnType<typeof record>[], now = noon + 1) =>
      given.run({ op: 'record-kafka-replays', queue: out, partition: 0, replays, now })
    const letterOf = async (at: number) => (await given.storage.getLetters([record(at).letterId], 'head'))[0]
    return { cluster, out, record, send, letterOf }
  }

  const failed = aFailure({ message: 'again' })

  it('a sent item leaves its queue as completed, and its letter waits for the outcome', async () => {
    const { cluster, out, record, send, letterOf } = await leasedRedrives(2)
    expect(await send([record(0), record(1)])).toEqual([
      { letterId: record(0).letterId, isRecorded: true },
      { letterId: record(1).letterId, isRecorded: true },
    ])
    const [counts] = await given.storage.readCounts({ queue: out })
    expect(counts).toMatchObject({ completed: 2, leased: 0, waiting: 0 })
    expect(await letterOf(0)).toMatchObject({ state: 'leased' })
    const replays = await given.storage.listKafkaReplays({
      cluster,
      by: 'sent',
      until: noon + 1,
      countMax: 10,
    })
    expect(replays.map(({ offset, sentAt, passedAt }) => [offset, sentAt, passedAt])).toEqual([
      [0, noon + 1, null],
      [1, noon + 1, null],
    ])
  })

  it('an item whose lease has ended is not recorded and waits to be sent again', async () => {
    const { out, record, send } = await leasedRedrives(1)
    await given.run({ op: 'advance', now: noon + 2 * minute, countMax: 10 })
    expect(await send([record(0)])).toEqual([{ letterId: record(0).letterId, isRecorded: false }])
    const [counts] = await given.storage.readCounts({ queue: out })
    expect(counts).toMatchObject({ completed: 0, waiting: 1 })
  })

  it('records are marked as passed up to the committed offset, and found by state, letter, place and content', async () => {
    const { cluster, record, send } = await leasedRedrives(3)
    await send([record(0), record(1), record(2, 1)])
    const partitions = await given.storage.listUnpassedPartitions({ cluster, countMax: 10 })
    expect(partitions).toEqual([
      { group: 'g', topic: 'orders', partition: 0 },
      { group: 'g', topic: 'orders', partition: 1 },
    ])
    const pass = { op: 'pass-kafka-replays', cluster, group: 'g', topic: 'orders', partition: 0 } as const
    expect(await given.run({ ...pass, committed: 1, countMax: 10, now: noon + 5 })).toEqual({ passed: 1 })
    expect(await given.run({ ...pass, committed: 2, countMax: 10, now: noon + 6 })).toEqual({ passed: 1 })
    const list = (query: object) =>
      given.storage
        .listKafkaReplays({ cluster, countMax: 10, ...query } as never)
        .then((replays) => replays.map(({ partition, offset }) => `${partition}/${offset}`))
    expect(await list({ by: 'passed', until: noon + 5 })).toEqual(['0/0'])
    expect(await list({ by: 'passed', until: noon + 9 })).toEqual(['0/0', '0/1'])
    const after = { at: noon + 5, letterId: record(0).letterId }
    expect(await list({ by: 'passed', until: noon + 9, after })).toEqual(['0/1'])
    expect(await list({ by: 'letter', letterIds: [record(2).letterId, 'none'] })).toEqual(['1/2'])
    const places = [{ topic: 'orders', partition: 0, offset: 1 }]
    expect(await list({ by: 'record', records: places })).toEqual(['0/1'])
    expect(await list({ by: 'content', contentHashes: ['hash 2', 'none'] })).toEqual(['1/2'])
    expect(await given.storage.listUnpassedPartitions({ cluster, countMax: 10 })).toHaveLength(1)
    const gone = { letterId: record(0).letterId, number: 1 }
    await given.run({
      op: 'end-redrives',
      ends: [{ ...gone, outcome: 'resolved', failure: null }],
      now: noon + 7,
    })
    await given.run({ op: 'forget-kafka-replays', replays: [gone, { ...gone, number: 2 }] })
    expect(await list({ by: 'passed', until: noon + 9 })).toEqual(['0/1'])
  })

  it('a redrive ends as resolved with the place of its record, only if its number is the current one', async () => {
    const { record, send, letterOf } = await leasedRedrives(1)
    await send([record(0)])
    const { letterId } = record(0)
    const target = { kind: 'kafka', name: 'orders', partition: 0, id: '0' } as const
    const end = { letterId, outcome: 'resolved', failure: null, target } as const
    expect(await given.run({ op: 'end-redrives', ends: [{ ...end, number: 2 }], now: noon + 2 })).toEqual([
      { letterId, state: null },
    ])
    await given.run({ op: 'end-redrives', ends: [{ ...end, number: 1 }], now: noon + 2 })
    const letter = await letterOf(0)
    expect(letter?.state).toBe('done')
    expect(letter?.letter?.redrives[0]).toMatchObject({ target, outcome: 'resolved' })
  })

  it('a record that died returns to its letter once, and its row is forgotten', async () => {
    const { cluster, record, send, letterOf } = await leasedRedrives(1)
    await send([record(0)])
    const { letterId } = record(0)
    const back = {
      op: 'return-letters',
      returns: [{ letterId, number: 1, failure: failed }],
      now: noon + 3,
    } as const
    expect(await given.run(back)).toEqual([{ letterId, outcome: 'returned' }])
    expect(await letterOf(0)).toMatchObject({
      state: 'waiting',
      retryCount: 1,
      failure: { message: 'again' },
    })
    expect(await given.run(back)).toEqual([{ letterId, outcome: 'repeated' }])
    expect(await letterOf(0)).toMatchObject({ retryCount: 1 })
    const replays = await given.storage.listKafkaReplays({
      cluster,
      by: 'letter',
      letterIds: [letterId],
      countMax: 1,
    })
    expect(replays).toEqual([])
  })

  it('a record that died before it was recorded leaves nothing behind that waits', async () => {
    const { cluster, record, send, letterOf } = await leasedRedrives(1)
    const { letterId } = record(0)
    await given.run({
      op: 'return-letters',
      returns: [{ letterId, number: 1, failure: failed }],
      now: noon + 1,
    })
    expect(await send([record(0)])).toEqual([{ letterId, isRecorded: false }])
    expect(await letterOf(0)).toMatchObject({ state: 'waiting', retryCount: 1 })
    expect(
      await given.storage.listKafkaReplays({ cluster, by: 'sent', until: noon + 9, countMax: 1 }),
    ).toEqual([])
  })

  it('a second record that could be the death of a redrive is refused', async () => {
    const { record, send, letterOf } = await leasedRedrives(1)
    await send([record(0)])
    const returns = [{ letterId: record(0).letterId, number: 1, isGuess: true, failure: failed }]
    await given.run({ op: 'return-letters', returns, now: noon + 3 })
    const again = given.run({ op: 'return-letters', returns, now: noon + 4 })
    const { message } = await expectRefusal(again, 'LETTER_NOT_FOUND')
    expect(message).toMatch(/redrive 1 of letter .* has failed already/)
    expect(await letterOf(0)).toMatchObject({ state: 'waiting', retryCount: 1 })
  })

  it('a letter whose redrive had ended too early becomes open again', async () => {
    const { record, send, letterOf } = await leasedRedrives(2)
    await send([record(0), record(1)])
    const ids = [record(0).letterId, record(1).letterId]
    const ends = [
      { letterId: ids[0] ?? '', outcome: 'resolved', failure: null } as const,
      { letterId: ids[1] ?? '', outcome: 'unknown', failure: null } as const,
    ]
    await given.run({ op: 'end-redrives', ends, now: noon + 2 })
    expect([(await letterOf(0))?.state, (await letterOf(1))?.retryCount]).toEqual(['done', 1])
    const returns = ids.map((letterId) => ({ letterId, number: 1, failure: failed }))
    await given.run({ op: 'return-letters', returns, now: noon + 3 })
    for (const at of [0, 1]) {
      const letter = await letterOf(at)
      expect(letter).toMatchObject({ state: 'waiting', retryCount: 1, failure: { message: 'again' } })
      expect(letter?.letter?.redrives).toMatchObject([{ number: 1, outcome: 'failed' }])
    }
  })

  it('a letter that a person discarded, or that is not there, does not come back', async () => {
    const { record, send, letterOf } = await leasedRedrives(1)
    await send([record(0)])
    const { letterId } = record(0)
    await given.run({
      op: 'end-redrives',
      ends: [{ letterId, outcome: 'unknown', failure: null }],
      now: noon + 2,
    })
    await given.run({ op: 'discard', letters: [{ letterId }], reason: 'old', now: noon + 3 })
    const returns = [{ letterId, number: 1, failure: failed }]
    expect(await given.run({ op: 'return-letters', returns, now: noon + 4 })).toEqual([
      { letterId, outcome: 'repeated' },
    ])
    expect(await letterOf(0)).toMatchObject({ state: 'discarded' })
    const missing = [{ letterId: '3MIRNYo8OaXaNK4b8jhvggOyiOT', number: 1, failure: failed }]
    await expectRefusal(given.run({ op: 'return-letters', returns: missing, now: noon }), 'LETTER_NOT_FOUND')
  })
})

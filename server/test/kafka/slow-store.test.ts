/** Bridges whose store does not answer for a while, with the real engine and store behind them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { parseKafkaClusters } from '../../src/config/kafka-clusters.ts'
import { mapSecrets } from '../../src/core/kafka/cluster.ts'
import { type ClusterBridge, createClusterBridge } from '../../src/drivers/kafka/cluster/cluster-bridge.ts'
import type { KafkaParts } from '../../src/drivers/kafka/parts.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { Command, Storage } from '../../src/storage/contract/storage.ts'
import { createSystemClock } from '../../src/system-clock.ts'
import { listAll } from '../conformance/support/store-reads.ts'
import { createTestStore, postgres, type TestStore } from '../conformance/support/test-stores.ts'
import { pollUntil } from '../http/poll-until.ts'
import { openTestKafka, type TestKafka } from './test-kafka.ts'

const kafka = await requireService('kafka')
const sessionMs = 6_000
/** A bridge holds the records that are being stored, and those of the next answer of Kafka. */
const heldBytesMax = 2 * 9 * 2 ** 20

type Hold = Readonly<{ waiting: () => number; release: () => void }>

describe('a Kafka bridge whose store is slow', needs(kafka, postgres), () => {
  let test: TestKafka
  let place: TestStore
  let storage: Storage
  const running = new Set<Readonly<{ bridge: ClusterBridge; engine: Engine; hold: Hold }>>()
  beforeAll(async () => {
    test = openTestKafka(kafka.brokers)
    place = await createTestStore('PostgreSQL')
    storage = await place.open()
  })
  afterEach(async () => {
    for (const { bridge, engine, hold } of running) {
      hold.release()
      await bridge.stop()
      await engine.close()
    }
    running.clear()
  })
  afterAll(async () => {
    await test.close()
    await place.drop()
  })

  const isIngest = (commands: readonly Command[]) =>
    commands.some(({ op }) => op === 'advance-kafka-positions')
  /** Holds writes of dead records back until they are released. */
  const holdWrites = (engine: Engine): Readonly<{ engine: Engine; hold: Hold }> => {
    const released = Promise.withResolvers<void>()
    let waiting = 0
    const write = (async (commands: readonly Command[]) => {
      if (isIngest(commands)) {
        waiting++
        await released.promise
        waiting--
      }
      return engine.write(commands)
    }) as Engine['write']
    return { engine: { ...engine, write }, hold: { waiting: () => waiting, release: released.resolve } }
  }
  const startBridge = (topic: string, group: string, owner: string, isHeld: boolean) => {
    const [cluster] = parseKafkaClusters(
      JSON.stringify({
        test: { brokers: kafka.brokers, topics: [topic], group, session_timeout: `${sessionMs}ms` },
      }),
    )
    if (cluster === undefined) throw new Error('there is no cluster')
    const clock = createSystemClock()
    const real = createEngine(storage, { clock })
    const { engine, hold } = holdWrites(real)
    if (!isHeld) hold.release()
    const parts: KafkaParts = {
      clusters: [],
      engine: () => engine,
      storage: () => storage,
      clock,
      owner,
      intervals: {
        discoveryMs: 200,
        proofMs: 1_000,
        proofGraceMs: 1_000,
        proofTimeoutMs: 60_000,
        lagMs: 1_000,
        backoffMsMax: 500,
      },
      log: { info: () => {}, warn: () => {} },
    }
    const bridge = createClusterBridge(
      mapSecrets(cluster, (secret) => async () => secret.reveal()),
      parts,
    )
    bridge.start()
    running.add({ bridge, engine: real, hold })
    return { bridge, hold }
  }
  const textsOf = async (topic: string): Promise<string[]> =>
    (await listAll(storage, topic)).map(({ payload }) => Buffer.from(payload.subarray(0, 30)).toString())
  const countOf = async (topic: string): Promise<number> =>
    (await storage.readQueueCounts({ queues: [topic], countMax: 1 }))[0]?.accepted ?? 0

  it('stops reading until the store answers, stays in its group, and stores each record once', {
    timeout: 90_000,
  }, async () => {
    const [partitions, count, bytes] = [4, 80, 500_000]
    const topic = await test.createTopic(`${test.name('slow')}.dlq`, partitions)
    const group = test.name('redrive')
    const padding = ' '.repeat(bytes)
    for (let n = 0; n < count; n++)
      await test.send([{ topic, partition: n % partitions, value: `record ${n} ${padding}` }])
    const { bridge, hold } = startBridge(topic, group, 'only', true)
    await pollUntil(
      async () => hold.waiting(),
      (waiting) => waiting > 0,
    )
    const heldBytes = () =>
      bridge
        .partitions()
        .reduce((sum, { fetchFrom, stored }) => sum + (Number(fetchFrom) - (stored ?? 0)) * bytes, 0)
    const members = async () => {
      const [described] = (await test.admin.describeGroups({ groups: [group] })).values()
      return described === undefined ? [] : [...described.members.keys()]
    }
    const before = await members()
    expect(before).toHaveLength(1)
    // Kafka measures the session by its own clock.
    await sleep(sessionMs + 2_000)
    expect(await members()).toEqual(before)
    expect(heldBytes()).toBeGreaterThan(0)
    expect(heldBytes()).toBeLessThan(heldBytesMax)
    expect(await countOf(topic)).toBe(0)
    hold.release()
    await pollUntil(
      () => countOf(topic),
      (stored) => stored >= count,
      60_000,
    )
    const texts = (await textsOf(topic)).map((text) => text.trim())
    expect(texts.toSorted()).toEqual(Array.from({ length: count }, (_, n) => `record ${n}`).toSorted())
  })

  it('a batch that is being stored while its partitions move to another bridge is refused, and stored once', {
    timeout: 90_000,
  }, async () => {
    const [partitions, count] = [6, 600]
    const topic = await test.createTopic(`${test.name('moved')}.dlq`, partitions)
    const group = test.name('redrive')
    await test.send(
      Array.from({ length: count }, (_, n) => ({ topic, partition: n % partitions, value: `record ${n}` })),
    )
    const first = startBridge(topic, group, 'first', true)
    await pollUntil(
      async () => first.hold.waiting(),
      (waiting) => waiting > 0,
    )
    expect(first.bridge.partitions()).toHaveLength(partitions)
    // The batch of the first bridge has records of all partitions. The second one gets half of them.
    const second = startBridge(topic, group, 'second', false)
    await pollUntil(
      async () => second.bridge.partitions().length,
      (held) => held === partitions / 2,
      40_000,
    )
    await pollUntil(
      () => countOf(topic),
      (stored) => stored === count / 2,
      40_000,
    )
    first.hold.release()
    await pollUntil(
      () => countOf(topic),
      (stored) => stored >= count,
      40_000,
    )
    const texts = await textsOf(topic)
    expect(texts).toHaveLength(count)
    expect(new Set(texts).size).toBe(count)
    const positions = await storage.listKafkaPositions({ cluster: 'test', group })
    expect(positions.reduce((sum, { recordCount }) => sum + recordCount, 0)).toBe(count)
    expect(new Set(positions.map(({ owner }) => owner))).toEqual(new Set(['first', 'second']))
  })
})

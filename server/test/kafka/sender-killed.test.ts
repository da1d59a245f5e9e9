import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { nameReplayQueue } from '../../src/core/kafka/replay-queues.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { createSystemClock } from '../../src/system-clock.ts'
import { conservationGap, listAll } from '../conformance/support/store-reads.ts'
import { createTestStore, postgres, type TestStore } from '../conformance/support/test-stores.ts'
import { pollUntil } from '../http/poll-until.ts'
import type { BridgeTask } from './processes/bridge.ts'
import { openTestKafka, type ReadRecord, type TestKafka } from './test-kafka.ts'

const kafka = await requireService('kafka')
const letterCount = 5
/** Redrives that are being sent when the server is killed are sent again after this time. */
const leaseUs = 5_000_000

describe('a server that is killed while it sends redrives to Kafka', needs(kafka, postgres), () => {
  let test: TestKafka
  let place: TestStore
  let storage: Storage
  let engine: Engine
  const children = new Set<ChildProcess>()
  beforeAll(async () => {
    test = openTestKafka(kafka.brokers)
    place = await createTestStore('PostgreSQL')
    storage = await place.open()
    engine = createEngine(storage, { clock: createSystemClock(), isTicking: false })
  })
  afterEach(() => {
    for (const child of children) child.kill('SIGKILL')
    children.clear()
  })
  afterAll(async () => {
    await engine.close()
    await test.close()
    await place.drop()
  })

  const startDriver = (task: Omit<BridgeTask, 'store'>): ChildProcess => {
    const script = fileURLToPath(new URL('./processes/bridge.ts', import.meta.url))
    const child = spawn(process.execPath, [script, JSON.stringify({ ...task, store: place.target })], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    children.add(child)
    return child
  }
  const end = async (child: ChildProcess): Promise<void> => {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
    children.delete(child)
  }
  const headersOf = ({ headers }: ReadRecord) =>
    Object.fromEntries(headers.map(([name, value]) => [name, String(value)]))

  /** Dead records of a new topic become letters, which are redriven by a driver that kills itself. */
  const redriveUntilKilled = async (at: 'announced' | 'sent') => {
    const name = test.name('sent')
    const [source, dead] = [await test.createTopic(name), await test.createTopic(`${name}.dlq`)]
    const group = test.name('redrive')
    // Each test has a cluster, and so replay queues, of its own.
    const cluster = name.replaceAll('.', '-')
    const clusters = JSON.stringify({
      [cluster]: { brokers: kafka.brokers, topics: [dead], group, session_timeout: '6s' },
    })
    await test.commit('billing', source, [0])
    await test.send(
      Array.from({ length: letterCount }, (_, n) => ({
        topic: dead,
        key: `k${n}`,
        value: `value ${n}`,
        headers: [
          ['original_topic', source],
          ['original_partition', '0'],
          ['original_offset', String(n)],
          ['consumer_group', 'billing'],
        ] as const,
      })),
    )
    const filling = startDriver({ clusters, kill: null })
    const letters = async () => ((await storage.getQueue(dead)) === null ? [] : listAll(storage, dead))
    await pollUntil(letters, (found) => found.length === letterCount, 60_000)
    const queue = nameReplayQueue(cluster, 'default')
    await pollUntil(
      () => storage.getQueue(queue),
      (found) => found !== null,
    )
    await end(filling)
    await engine.updateQueue(queue, { leaseTimeoutUs: leaseUs })
    const redriven = (await letters()).map(({ rootId }) => ({ letterId: rootId, queue }))
    await storage.write([
      {
        op: 'redrive',
        letters: redriven,
        isDeadAllowed: true,
        isCapped: false,
        actor: 'test',
        now: Date.now() * 1_000,
      },
    ])
    const child = startDriver({ clusters, kill: { at, write: 1 } })
    const [, signal] = await once(child, 'exit')
    expect(signal).toBe('SIGKILL')
    // The next server has time to send them.
    await engine.updateQueue(queue, { leaseTimeoutUs: 120_000_000 })
    await test.admin.removeMembersFromConsumerGroup({ groupId: group }).catch(() => {})
    return { source, dead, clusters, letters, queue }
  }
  const expectConserved = async (...queues: readonly string[]): Promise<void> => {
    for (const queue of queues) {
      const [counts] = await storage.readQueueCounts({ queues: [queue], countMax: 1 })
      expect(counts === undefined ? 'no counts' : conservationGap(counts)).toBe(0)
    }
  }

  it('after Kafka stored the records and before the store did: they are sent again, with the same letter and attempt, and resolved once', {
    timeout: 120_000,
  }, async () => {
    const { source, dead, clusters, letters, queue } = await redriveUntilKilled('sent')
    expect(await test.read(source)).toHaveLength(letterCount)
    expect((await letters()).every(({ state }) => state === 'leased')).toBe(true)
    startDriver({ clusters, kill: null })
    const records = await pollUntil(
      () => test.read(source),
      (found) => found.length >= 2 * letterCount,
      60_000,
    )
    const sent = records.map(headersOf).map((headers) => headers['redrive-letter-id'])
    expect(new Set(sent).size).toBe(letterCount)
    expect(records.map(headersOf).every((headers) => headers['redrive-attempt'] === '1')).toBe(true)
    await test.commit('billing', source, [2 * letterCount])
    const ended = await pollUntil(letters, (found) => found.every(({ state }) => state === 'done'), 60_000)
    expect(ended.map(({ letter }) => letter?.redrives.map(({ outcome }) => outcome))).toEqual(
      Array.from({ length: letterCount }, () => ['resolved']),
    )
    expect(await test.read(source)).toHaveLength(2 * letterCount)
    await expectConserved(dead, queue)
  })

  it('a record that dies before the store knows that it was sent returns to its letter, and is not sent again', {
    timeout: 120_000,
  }, async () => {
    const { source, dead, clusters, letters, queue } = await redriveUntilKilled('sent')
    const records = await test.read(source)
    // The worker keeps the headers of the first record only; the others are recognised by key and value.
    await test.send(
      records.map(({ key, value, headers }, n) => ({
        topic: dead,
        key,
        value,
        headers: [
          ...(n === 0 ? headers : []),
          ['original_topic', source],
          ['consumer_group', 'billing'],
          ['error', 'again'],
        ] as const,
      })),
    )
    const reading = startDriver({ clusters, kill: null })
    const returned = await pollUntil(
      letters,
      (found) => found.every(({ state, retryCount }) => state === 'waiting' && retryCount === 1),
      60_000,
    )
    expect(returned).toHaveLength(letterCount)
    await end(reading)
    startDriver({ clusters, kill: null })
    await pollUntil(
      async () => (await storage.readQueueCounts({ queues: [queue], countMax: 1 }))[0],
      (counts) => counts?.waiting === 0 && counts.leased === 0,
      60_000,
    )
    expect(await test.read(source)).toHaveLength(letterCount)
    await expectConserved(dead, queue)
  })

  it('before the records were sent: they are sent once', { timeout: 120_000 }, async () => {
    const { source, dead, clusters, letters, queue } = await redriveUntilKilled('announced')
    expect(await test.read(source)).toEqual([])
    startDriver({ clusters, kill: null })
    await pollUntil(
      () => test.read(source),
      (found) => found.length >= letterCount,
      60_000,
    )
    await test.commit('billing', source, [letterCount])
    await pollUntil(letters, (found) => found.every(({ state }) => state === 'done'), 60_000)
    expect(await test.read(source)).toHaveLength(letterCount)
    await expectConserved(dead, queue)
  })
})

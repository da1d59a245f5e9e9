import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { listAll } from '../conformance/support/store-reads.ts'
import { createTestStore, postgres, type TestStore } from '../conformance/support/test-stores.ts'
import { pollUntil } from '../http/poll-until.ts'
import { repeats, withRandom } from '../random-test.ts'
import type { BridgeTask } from './processes/bridge.ts'
import { openTestKafka, type TestKafka } from './test-kafka.ts'

const kafka = await requireService('kafka')

/** REDRIVE_TEST_SEEDS=50 kills 50 bridges. */
const kills = repeats(5)
const partitions = 12

describe('a bridge that is killed', needs(kafka, postgres), () => {
  let test: TestKafka
  let place: TestStore
  let storage: Storage
  const children: ChildProcess[] = []
  beforeAll(async () => {
    test = openTestKafka(kafka.brokers)
    place = await createTestStore('PostgreSQL')
    storage = await place.open()
  })
  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL')
    await test.close()
    await place.drop()
  })

  const startBridge = (task: BridgeTask): ChildProcess => {
    const script = fileURLToPath(new URL('./processes/bridge.ts', import.meta.url))
    const child = spawn(process.execPath, [script, JSON.stringify(task)], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    children.push(child)
    return child
  }

  const readPayloads = async (queue: string): Promise<string[]> => {
    const items = await listAll(storage, queue)
    return items.map(({ payload }) => Buffer.from(payload).toString())
  }

  it(
    `${kills} kills before, during and after a write lose no record and store none twice`,
    { timeout: 30_000 + kills * 15_000 },
    () =>
      withRandom(async (random) => {
        const topic = await test.createTopic(`${test.name('killed')}.dlq`, partitions)
        const group = test.name('redrive')
        const clusters = JSON.stringify({ test: { brokers: kafka.brokers, topics: [topic], group } })
        let sent = 0
        const send = async (count: number): Promise<void> => {
          await test.send(
            Array.from({ length: count }, (_, n) => ({
              topic,
              partition: n % partitions,
              value: `record ${sent + n}`,
            })),
          )
          sent += count
        }
        for (let kill = 0; kill < kills; kill++) {
          await send(60)
          const at = (['after', 'before', 'during'] as const)[kill % 3] ?? 'after'
          const child = startBridge({
            store: place.target,
            clusters,
            kill: { at, write: 1 + random.below(2) },
          })
          const ended = once(child, 'exit')
          // Records arrive while the bridge reads, so that it writes more than once.
          const sending = (async () => {
            while (child.exitCode === null && child.signalCode === null) {
              await send(24)
              await new Promise((resolve) => setTimeout(resolve, 100))
            }
          })()
          await ended
          await sending
          // The group would wait for the session of the dead member to end.
          await test.admin.removeMembersFromConsumerGroup({ groupId: group }).catch(() => {})
        }
        startBridge({ store: place.target, clusters, kill: null })
        const stored = async () => {
          const [counts] = await storage.readQueueCounts({ queues: [topic], countMax: 1 })
          return counts === undefined ? 0 : counts.accepted
        }
        await pollUntil(stored, (count) => count >= sent, 60_000)
        const payloads = await readPayloads(topic)
        expect({
          count: payloads.length,
          different: new Set(payloads).size,
          accepted: await stored(),
        }).toEqual({ count: sent, different: sent, accepted: sent })
        const positions = await storage.listKafkaPositions({ cluster: 'test', group })
        expect(positions.reduce((sum, { recordCount }) => sum + recordCount, 0)).toBe(sent)
        expect(Math.max(...positions.map(({ epoch }) => epoch))).toBeGreaterThan(kills / 2)
      }),
  )
})

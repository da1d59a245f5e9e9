import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { openTestKafka, type TestKafka } from '../kafka/test-kafka.ts'
import { repeats, withRandom } from '../random-test.ts'
import type { KillPoint, WorkerTask } from './processes/worker.ts'
import { createWorkerTest, parseEnvelope, readUntil, type WorkerTest, waitUntil } from './test-worker.ts'

const kafka = await requireService('kafka')

/** REDRIVE_TEST_SEEDS=50 kills 50 workers. */
const kills = repeats(6)

describe('a Kafka worker that is killed', needs(kafka), () => {
  let test: TestKafka
  let workers: WorkerTest
  const children = new Set<ChildProcess>()
  const processed: string[] = []
  beforeAll(() => {
    test = openTestKafka(kafka.brokers)
    workers = createWorkerTest(kafka.brokers)
  })
  afterEach(async () => {
    for (const child of children) child.kill('SIGKILL')
    processed.length = 0
    await workers.stopAll()
  })
  afterAll(() => test.close())

  const startProcess = (task: Omit<WorkerTask, 'brokers'>): ChildProcess => {
    const script = fileURLToPath(new URL('./processes/worker.ts', import.meta.url))
    const argument = JSON.stringify({ ...task, brokers: kafka.brokers })
    const child = spawn(process.execPath, [script, argument], { stdio: ['ignore', 'pipe', 'inherit'] })
    children.add(child)
    child.stdout?.on('data', (text) => processed.push(...String(text).split('\n').filter(Boolean)))
    return child
  }
  /** Runs a worker until it kills itself, and removes it from its group, as the end of its session would. */
  const runUntilKilled = async (task: Omit<WorkerTask, 'brokers'>): Promise<void> => {
    const child = startProcess(task)
    const [, signal] = await once(child, 'exit')
    children.delete(child)
    expect(signal).toBe('SIGKILL')
    await test.admin.removeMembersFromConsumerGroup({ groupId: task.group }).catch(() => {})
  }
  const isCommitted = (group: string, topic: string, offset: number) =>
    waitUntil(async () => (await test.committed(group, topic))[0] === offset, 60_000)

  it('a record that crashes its worker at each attempt ends in the dead-letter topic', {
    timeout: 120_000,
  }, async () => {
    const topic = await test.createTopic(test.name('poison'))
    const task = { topic, group: test.name('group'), retry: [0, 0] }
    await test.send(['a', 'b', 'poison', 'c'].map((value) => ({ topic, value })))
    // The first crash is only noticed by the mark of the partition. The next three are counted.
    for (let crash = 0; crash < 4; crash++)
      await runUntilKilled({ ...task, kill: { at: 'attempt', count: 1 } })
    startProcess({ ...task, kill: null })
    await isCommitted(task.group, topic, 4)
    const records = await test.read(`${topic}.dlq`)
    expect(records.map(parseEnvelope)).toMatchObject([
      { original_offset: 2, retry_count: 2, error_details: { exception_class: 'WorkerCrashed' } },
    ])
    expect([...new Set(processed)].toSorted()).toEqual(['a', 'b', 'c'])
  })

  it(
    `${kills} kills at different points lose no record, and each death is one letter`,
    {
      timeout: 60_000 + kills * 20_000,
    },
    () =>
      withRandom(async (random) => {
        const topic = await test.createTopic(test.name('killed'))
        const task = { topic, group: test.name('group'), retry: [0] }
        const sent: string[] = []
        const points: readonly KillPoint[] = ['dead', 'processed', 'failed']
        for (let kill = 0; kill < kills; kill++) {
          const values = Array.from({ length: 30 }, (_, n) => `${n % 6 === 5 ? 'bad' : 'good'} ${kill} ${n}`)
          await test.send(values.map((value) => ({ topic, value })))
          sent.push(...values)
          const at = points[kill % points.length] ?? 'dead'
          await runUntilKilled({ ...task, kill: { at, count: 1 + random.below(3) } })
        }
        startProcess({ ...task, kill: null })
        await isCommitted(task.group, topic, sent.length)
        const dead = (await test.read(`${topic}.dlq`)).map(parseEnvelope)
        const places = dead.map(({ original_offset: offset }) => offset)
        // Redrive stores one letter for each place. A crash may write a death twice, with the same place.
        expect(new Set(places).size).toBe(sent.filter((value) => value.startsWith('bad')).length)
        expect(places.length - new Set(places).size).toBeLessThanOrEqual(kills)
        expect([...new Set(processed)].toSorted()).toEqual(
          sent.filter((value) => value.startsWith('good')).toSorted(),
        )
        for (const { retry_count: count } of dead) expect(count).toBe(1)
      }),
  )

  it('attempts and the time of the first failure survive a restart', async () => {
    const topic = await test.createTopic(test.name('restart'))
    const group = test.name('group')
    const attempts: number[] = []
    const handler = (_: unknown, { attempt }: Readonly<{ attempt: number }>) => {
      attempts.push(attempt)
      throw new Error(`attempt ${attempt}`)
    }
    await test.send([{ topic, value: 'x' }])
    const first = workers.start({ topics: topic, group, handler, retry: [0, '1h', 0] })
    await waitUntil(() => attempts.length === 2)
    const failedAt = Date.now()
    await first.stop({ withinMs: 1_000 })
    workers.start({ topics: topic, group, handler, retry: [0, 0, 0] })
    const [record] = await readUntil(test, `${topic}.dlq`, 1)
    expect(attempts).toEqual([1, 2, 3, 4])
    expect(parseEnvelope(record).retry_count).toBe(3)
    expect(Date.parse(parseEnvelope(record).first_failure_at)).toBeLessThanOrEqual(failedAt)
  })

  it('a wait that was started before a restart is continued after it', async () => {
    const topic = await test.createTopic(test.name('wait'))
    const group = test.name('group')
    const attempts: number[] = []
    let nowMs = Date.now()
    const options = {
      topics: topic,
      group,
      retry: ['1h'],
      clock: { nowMs: () => nowMs, elapsedMs: () => 0, setTimer: () => 0, clearTimer: () => {} },
      handler: (_: unknown, { attempt }: Readonly<{ attempt: number }>) => {
        attempts.push(attempt)
        if (attempt === 1) throw new Error('later')
      },
    } as const
    await test.send([{ topic, value: 'x' }])
    const first = workers.start(options)
    await waitUntil(() => attempts.length === 1)
    await first.stop({ withinMs: 1_000 })
    const second = workers.start(options)
    await waitUntil(() => second.partitions().length === 2)
    expect(attempts).toEqual([1])
    await second.stop({ withinMs: 1_000 })
    nowMs += 3_600_000
    workers.start(options)
    await isCommitted(group, topic, 1)
    expect(attempts).toEqual([1, 2])
  })
})

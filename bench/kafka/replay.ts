/** Redriven letters into Kafka, beside the bare producer with the same batches. */
import { randomUUID } from 'node:crypto'
import { Producer } from '@platformatic/kafka'
import type { Storage } from '../../server/src/storage/contract/storage.ts'
import { searchAll } from '../../server/src/storage/search/search-letters.ts'
import type { BenchStore } from '../bench-stores.ts'
import type { KafkaBench } from '../kafka.ts'
import { openRedrive } from '../peers/redrive.ts'
import type { Measured } from '../report.ts'
import { startDriver } from './driver.ts'
import { alternate, compare, type Part, toMeasured } from './ratios.ts'
import { type BenchRecord, createDeadRecord } from './topics.ts'

const partitions = 12
const recordsDefault = 60_000
const recordsQuick = 20_000
const batch = 1_000
const operation = 'records of 300 bytes into their topic'

export async function measureReplay(
  bench: KafkaBench,
  createStore: () => Promise<BenchStore>,
): Promise<Part> {
  const count = bench.isQuick ? recordsQuick : recordsDefault
  const name = `replay-${randomUUID().slice(0, 8)}`
  const source = await bench.topics.create(name, partitions)
  const dead = await bench.topics.create(`${name}.dlq`, partitions)
  const group = `group-${name}`
  await bench.topics.fill(dead, partitions, count, (n) => createDeadRecord(source, group, n))
  const store = await createStore()
  let done = 0
  const share = Math.floor(count / bench.rounds)
  const { engine, storage, close } = await openRedrive(store.target)
  const filling = startDriver(bench.brokers, engine, storage, dead)
  await waitFor(
    async () => (await storage.readQueueCounts({ queues: [dead], countMax: 1 }))[0]?.accepted === count,
  )
  await filling.stop()
  const ids = await listIds(storage, dead)
  const redrive = async (): Promise<Measured> => {
    // The letters wait in the replay queue before the sender starts, so only sending is measured.
    const own = ids.slice(done, done + share)
    done += share
    await redriveAll(storage, own)
    const before = await countRecords(bench, source)
    const kafka = startDriver(bench.brokers, engine, storage, dead)
    await waitFor(async () => (await countRecords(bench, source)) > before)
    const startedAt = performance.now()
    const first = (await countRecords(bench, source)) - before
    await waitFor(async () => (await countRecords(bench, source)) - before >= share)
    const seconds = (performance.now() - startedAt) / 1_000
    await waitFor(async () => (await storage.readCounts({ queue: 'kafka.bench.replay' }))[0]?.waiting === 0)
    await kafka.stop()
    return toMeasured('redrives to Kafka', operation, batch, (share - first) / seconds)
  }
  const bare = async (): Promise<Measured> =>
    toMeasured('bare producer', operation, batch, await sendWithBareProducer(bench, source, share))
  const [sent, produced] = (await alternate(bench.rounds, [redrive, bare])) as [Measured, Measured]
  await close()
  await store.remove()
  return { measured: [sent, produced], ratios: [compare(sent, produced, 0.5)] }
}

async function redriveAll(storage: Storage, ids: readonly string[]): Promise<void> {
  for (let at = 0; at < ids.length; at += batch) {
    const letters = ids.slice(at, at + batch).map((letterId) => ({ letterId, queue: 'kafka.bench.replay' }))
    const now = Date.now() * 1_000
    await storage.write([
      { op: 'redrive', letters, isDeadAllowed: true, isCapped: false, actor: 'bench', now },
    ])
  }
}

async function listIds(storage: Storage, queue: string): Promise<string[]> {
  const filter = { queues: [queue], states: ['waiting'] } as const
  const query = {
    filter,
    order: 'deadLetteredAt',
    isDescending: false,
    countMax: batch,
    bytes: 'none',
  } as const
  const ids: string[] = []
  for await (const { found } of searchAll(storage, query)) ids.push(...found.map(({ item }) => item.rootId))
  return ids
}

async function countRecords({ topics }: KafkaBench, topic: string): Promise<number> {
  const listed = await topics.admin.listOffsets({
    topics: [
      {
        name: topic,
        partitions: Array.from({ length: partitions }, (_, partitionIndex) => ({
          partitionIndex,
          timestamp: -1n,
        })),
      },
    ],
  })
  return listed.flatMap(({ partitions: all }) => all).reduce((sum, { offset }) => sum + Number(offset), 0)
}

/** Batch after batch, like the sender, with records of the same size and headers. */
async function sendWithBareProducer({ brokers }: KafkaBench, topic: string, count: number): Promise<number> {
  const producer = new Producer({
    clientId: 'bench',
    bootstrapBrokers: [...brokers],
    acks: -1,
    idempotent: true,
  })
  const value = Buffer.from(
    JSON.stringify({ event_id: 1, deal_id: 'deal_1', payload: { amount: 1, note: 'x'.repeat(200) } }),
  )
  const create = (n: number): BenchRecord => ({
    key: Buffer.from(`deal_${n}`),
    value,
    headers: new Map([
      [Buffer.from('redrive-letter-id'), Buffer.from('2'.repeat(27))],
      [Buffer.from('redrive-attempt'), Buffer.from('1')],
      [Buffer.from('redrive-target-group'), Buffer.from('group')],
    ]),
  })
  const messages = (from: number) =>
    Array.from({ length: batch }, (_, n) => ({
      topic,
      partition: (from + n) % partitions,
      ...create(from + n),
    }))
  await producer.send({ messages: messages(0) })
  const startedAt = performance.now()
  for (let sent = 0; sent < count; sent += batch) await producer.send({ messages: messages(sent) })
  const seconds = (performance.now() - startedAt) / 1_000
  await producer.close()
  return count / seconds
}

async function waitFor(isDone: () => Promise<boolean>): Promise<void> {
  while (!(await isDone())) await new Promise((resolve) => setTimeout(resolve, 10))
}

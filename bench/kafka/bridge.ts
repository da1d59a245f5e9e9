/** Dead-letter records into PostgreSQL, beside the bare client and beside COPY of the same rows. */
import { randomUUID } from 'node:crypto'
import type { Engine } from '../../server/src/engine/engine.ts'
import type { BenchStore } from '../bench-stores.ts'
import type { KafkaBench } from '../kafka.ts'
import { measurePlainCopy } from '../letters/plain-sql.ts'
import { openRedrive } from '../peers/redrive.ts'
import type { Measured } from '../report.ts'
import { readWithBareClient } from './bare.ts'
import { startDriver } from './driver.ts'
import { alternate, compare, type Part, toMeasured } from './ratios.ts'
import { createDeadRecord } from './topics.ts'

const partitions = 12
/** COPY needs 50 files of 1,000 rows. */
const recordsDefault = 120_000
const recordsQuick = 60_000
const operation = 'dead-letter records of 1 KB'

export async function measureBridge(
  bench: KafkaBench,
  createStore: () => Promise<BenchStore>,
): Promise<Part> {
  const count = bench.isQuick ? recordsQuick : recordsDefault
  const topic = await bench.topics.create(`bridge-${randomUUID().slice(0, 8)}.dlq`, partitions)
  await bench.topics.fill(topic, partitions, count, (n) => createDeadRecord('bridge', 'bench', n))
  let copied: Measured | undefined
  const bridge = async (): Promise<Measured> => {
    const store = await createStore()
    const perSecond = await ingestAll(bench.brokers, topic, count, store)
    // The rows that were just stored are copied, at the same load of the machine.
    if (store.target.kind === 'postgres') {
      const copy = {
        ...(await measurePlainCopy('COPY of the same rows', store.target.url)),
        operation,
        callers: 4,
      }
      if (copied === undefined || copy.perSecond > copied.perSecond) copied = copy
    }
    await store.remove()
    return toMeasured('bridge into PostgreSQL', operation, 1_000, perSecond)
  }
  const bare = async (): Promise<Measured> => {
    const perSecond = await readWithBareClient(bench.brokers, topic, count)
    return toMeasured('bare client', operation, 1_000, perSecond)
  }
  const [ingested, read] = (await alternate(bench.rounds, [bridge, bare])) as [Measured, Measured]
  if (copied === undefined) throw new Error('COPY was not measured')
  const slower = copied.perSecond < read.perSecond ? copied : read
  return {
    measured: [ingested, read, copied],
    ratios: [read, copied].map((other) => compare(ingested, other, other === slower ? 0.5 : null)),
  }
}

/** From the first write to the last. */
async function ingestAll(
  brokers: readonly string[],
  topic: string,
  count: number,
  { target }: BenchStore,
): Promise<number> {
  const { engine, storage, close } = await openRedrive(target)
  let [startedAt, endedAt, stored] = [0, 0, 0]
  const done = Promise.withResolvers<void>()
  const write = (async (commands: Parameters<Engine['write']>[0]) => {
    const advance = commands.find(({ op }) => op === 'advance-kafka-positions')
    if (advance !== undefined && startedAt === 0) startedAt = performance.now()
    const results = await engine.write(commands)
    if (advance?.op === 'advance-kafka-positions') {
      stored += advance.positions.reduce((sum, { recordCount }) => sum + recordCount, 0)
      endedAt = performance.now()
      if (stored >= count) done.resolve()
    }
    return results
  }) as Engine['write']
  const kafka = startDriver(brokers, { ...engine, write }, storage, topic)
  await done.promise
  await kafka.stop()
  const [counts] = await storage.readQueueCounts({ queues: [topic], countMax: 1 })
  if (counts?.accepted !== count) throw new Error(`${counts?.accepted} letters of ${count} records`)
  await close()
  return count / ((endedAt - startedAt) / 1_000)
}

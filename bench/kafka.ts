/**
 * Measures the Kafka bridge, redrives to Kafka, and the Kafka worker of the client, each beside the bare
 * client on the same topic at the same moment. All parts run in this process, and share the machine with the
 * broker and PostgreSQL.
 */
import { startPrivateKafka } from '../tools/services/index.ts'
import type { BenchOptions } from './arguments.ts'
import { openBenchStores } from './bench-stores.ts'
import { measureBridge } from './kafka/bridge.ts'
import { measureReplay } from './kafka/replay.ts'
import { createBenchTopics } from './kafka/topics.ts'
import { measureWorker } from './kafka/worker.ts'
import { type BenchResult, formatRates, formatRatios } from './report.ts'
import { UnmetRequirement } from './unmet-requirement.ts'

export type KafkaBench = Readonly<{
  brokers: readonly string[]
  rounds: number
  isQuick: boolean
  topics: ReturnType<typeof createBenchTopics>
}>

export async function benchKafka(options: BenchOptions): Promise<BenchResult> {
  const { rounds, isQuick, only = '', log } = options
  await using stores = await openBenchStores(['postgres'], { isWarmedUp: !isQuick })
  const kafka = await startPrivateKafka()
  if (!kafka.isFound) throw new UnmetRequirement(`Kafka is not available: ${kafka.reason}`)
  const topics = createBenchTopics(kafka.brokers)
  const bench: KafkaBench = { brokers: kafka.brokers, rounds, isQuick, topics }
  const parts = [
    { name: 'bridge', run: () => measureBridge(bench, () => stores.create('postgres')) },
    { name: 'replay', run: () => measureReplay(bench, () => stores.create('postgres')) },
    { name: 'worker', run: () => measureWorker(bench) },
  ].filter(({ name }) => name.includes(only))
  const results: BenchResult[] = []
  for (const { name, run } of parts) {
    log(`kafka: ${name}`)
    const result = await run()
    log(formatRates(result.measured))
    if (result.ratios !== undefined) log(formatRatios(result.ratios))
    results.push(result)
  }
  await topics.close()
  await kafka.end()
  return {
    measured: results.flatMap(({ measured }) => measured),
    ratios: results.flatMap(({ ratios }) => ratios ?? []),
    notes: [...stores.notes, 'Kafka: one private broker on this machine, with its defaults.'],
  }
}

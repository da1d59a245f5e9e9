/**
 * Runs one worker of `workers.ts` until SIGTERM:
 *
 *     KAFKA_BROKERS=localhost:9092 REDRIVE_URL=http://127.0.0.1:8080 node main.ts payout-executor
 */
import { createClient } from '@redrive/client'
import { createKafkaWorker } from '@redrive/client/kafka'
import { handleCommand } from './handle-command.ts'
import { workers } from './workers.ts'

const name = process.argv[2] ?? ''
const spec = workers[name]
if (spec === undefined) {
  console.error(`usage: node main.ts ${Object.keys(workers).join(' | ')}`)
  process.exit(2)
}

const {
  KAFKA_BROKERS = 'localhost:9092',
  REDRIVE_URL,
  REDRIVE_API_KEY,
  REDRIVE_CLUSTER = 'main',
} = process.env
const client =
  REDRIVE_URL === undefined
    ? undefined
    : createClient({ url: REDRIVE_URL, ...(REDRIVE_API_KEY !== undefined && { apiKey: REDRIVE_API_KEY }) })

const worker = createKafkaWorker({
  brokers: KAFKA_BROKERS.split(','),
  topics: spec.topic,
  group: name,
  instanceId: `${name}-${process.env.INSTANCE ?? '1'}`,
  retry: spec.retry,
  // Without Redrive, waits of minutes block their partition, and keys are not held.
  ...(client !== undefined && {
    redrive: { client, cluster: REDRIVE_CLUSTER },
    holdKeys: spec.holdKeys ?? false,
  }),
  handler: (record, context) => handleCommand(name, record, context),
  onRetry: ({ record, attempt, delayMs }) =>
    console.warn(`${name}: offset ${record.offset} failed (attempt ${attempt}), again in ${delayMs} ms`),
  onDeadLetter: ({ record, topic, attempts }) =>
    console.warn(`${name}: offset ${record.offset} is dead after ${attempts} attempts, now in ${topic}`),
})

const stop = async (): Promise<void> => {
  await worker.stop({ withinMs: 20_000 })
  console.log(`${name}: stopped, ${JSON.stringify(worker.counts())}`)
}
process.once('SIGTERM', () => void stop())
process.once('SIGINT', () => void stop())

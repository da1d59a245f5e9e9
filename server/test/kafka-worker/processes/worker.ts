/**
 * A worker in its own process, which kills itself at a given point. It writes what it processed to
 * stdout.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createKafkaWorker } from '../../../../client/src/kafka/index.ts'

/**
 * - `attempt`: in the handler of a record `poison`.
 * - `processed`: after the handler of a record, before its offset is committed.
 * - `failed`: after an attempt failed, before or while its attempts are committed.
 * - `dead`: after Kafka acknowledged a dead letter, before the offset is committed.
 */
export type KillPoint = 'attempt' | 'processed' | 'failed' | 'dead'

export type WorkerTask = Readonly<{
  brokers: readonly string[]
  topic: string
  group: string
  retry: readonly number[]
  /** Null: run until the parent ends the process. */
  kill: Readonly<{ at: KillPoint; count: number }> | null
}>

const { brokers, topic, group, retry, kill } = JSON.parse(process.argv[2] ?? '{}') as WorkerTask
let reached = 0

const killAt = (point: KillPoint): void => {
  if (kill?.at === point && ++reached === kill.count) process.kill(process.pid, 'SIGKILL')
}

createKafkaWorker({
  brokers,
  topics: topic,
  group,
  retry,
  sideTopics: false,
  sessionTimeout: '6s',
  handler: async (record, { attempt }) => {
    const text = record.text()
    if (text === 'poison') killAt('attempt')
    if (text.startsWith('bad') || text === 'poison') throw new Error(`attempt ${attempt} failed`)
    await sleep(1)
    process.stdout.write(`${text}\n`)
    killAt('processed')
  },
  onRetry: () => killAt('failed'),
  onDeadLetter: () => killAt('dead'),
  onError: () => {},
})

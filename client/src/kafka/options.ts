import type { ConsumerOptions } from '@platformatic/kafka'
import type { Client } from '../client.ts'
import type { Clock } from '../http/clock.ts'
import type { SendHeartbeat } from '../worker/heartbeat.ts'
import { KafkaWorkerOptionsError, type NonRetryable } from './errors.ts'
import type { KafkaRecord } from './records/kafka-record.ts'

/** A duration as text, such as `30s` or `5m`, or in milliseconds. */
export type Delay = string | number

/** Options of the Kafka client for the connection. */
export type KafkaConnection = Readonly<
  Partial<
    Pick<
      ConsumerOptions<Buffer, Buffer, Buffer, Buffer>,
      'tls' | 'sasl' | 'tlsServerName' | 'connectTimeout' | 'requestTimeout' | 'clientId'
    >
  >
>

export type RecordContext = Readonly<{
  /** The ordinal of this attempt, from 1. It continues after a restart. */
  attempt: number
  group: string
  /**
   * Aborts if the partition was given to another worker, which may process the record now, and if a stop
   * takes too long.
   */
  signal: AbortSignal
}>

/**
 * Processes one record. If it returns, the record is processed; if it throws, the record is retried, and at
 * last written to the dead-letter topic. Records of one partition are processed one after the other.
 */
export type RecordHandler = (record: KafkaRecord, context: RecordContext) => unknown

export type RetryEvent = Readonly<{
  record: KafkaRecord
  error: unknown
  /** Failed attempts until now. */
  attempt: number
  delayMs: number
  /** Redrive stores the record until the delay is over, and the partition continues. */
  isHandedOver: boolean
}>

export type DeadLetterEvent = Readonly<{
  record: KafkaRecord
  error: unknown
  /** Failed attempts. */
  attempts: number
  topic: string
}>

export type WorkerErrorContext = Readonly<{
  during: 'connect' | 'fetch' | 'commit' | 'dead-letter' | 'redrive' | 'heartbeat' | 'topics' | 'offsets'
  topic?: string
  partition?: number
}>

export type KafkaWorkerOptions = Readonly<{
  /** `host:port` of some brokers. */
  brokers: readonly string[]
  connection?: KafkaConnection
  /** The topics to read. `topic` is another name for it. */
  topics?: string | readonly string[]
  topic?: string | readonly string[]
  group: string
  handler: RecordHandler
  /** The delay before each retry: with n delays a record is tried n + 1 times. Default: `1s`, `5s`, `30s`. */
  retry?: readonly Delay[]
  /** The dead-letter topic of a topic, by name. Default `{topic}.dlq`. */
  deadLetter?: string | ((topic: string) => string)
  /** Longer waits are handed over to Redrive, if `redrive` is given. Default `30s`. */
  waitMax?: Delay
  /** Stores records that wait long, and records of held keys. Without it, long waits block a partition. */
  redrive?: Readonly<{
    client: Client
    /** The name of the cluster in the configuration of the server. Needed for `holdKeys`. */
    cluster?: string
  }>
  /**
   * Keeps later records of a dead record's key in Redrive, in order, until the dead one is RESOLVED or
   * discarded. Needs `redrive` with `cluster`. Default false.
   */
  holdKeys?: boolean
  /** How often the letters of held keys are looked up. Default `5s`. */
  holdCheck?: Delay
  /** Errors that no retry can help, in addition to those of deserialization and validation. */
  nonRetryable?: readonly NonRetryable[] | ((error: unknown) => boolean)
  /** Also reads the side topic `{topic}.redrive.{group}` of each topic. Default true. */
  sideTopics?: boolean
  /** Creates missing dead-letter topics and side topics. Default true. */
  createTopics?: boolean
  /** How often the topics are looked up, to find partitions that were added. Default `30s`. */
  topicCheck?: Delay
  /** Where a group without offsets starts. Default `earliest`. */
  startFrom?: 'earliest' | 'latest'
  /** The name of this instance in dead letters and heartbeats. Default: random. */
  instanceId?: string
  /** The kind of worker in heartbeats. Default: the group. */
  type?: string
  /** Kafka gives the partitions of a worker that crashed to others after this time. Default `30s`. */
  sessionTimeout?: Delay
  /** How long a rebalance waits for handlers that are running. Default: a third of `sessionTimeout`. */
  rebalanceGrace?: Delay
  /**
   * Sends the state of the worker every `heartbeatInterval` (default `10s`) and at its stop, for example
   * `sendToRedis(redis)` of `@redrive/client`.
   */
  heartbeat?: SendHeartbeat
  heartbeatInterval?: Delay
  /** Stops the worker, as `stop()` does. */
  signal?: AbortSignal

  onRetry?: (event: RetryEvent) => void
  onDeadLetter?: (event: DeadLetterEvent) => void
  /** Errors that the worker retries. Default: written to the console. */
  onError?: (error: unknown, context: WorkerErrorContext) => void
  clock?: Clock
}>

export type WorkerSettings = Readonly<{
  brokers: readonly string[]
  connection: KafkaConnection
  topics: readonly string[]
  group: string
  handler: RecordHandler
  delaysMs: readonly number[]
  nameDeadTopic(topic: string): string
  waitMsMax: number
  redrive: Readonly<{ client: Client; cluster: string | null }> | null
  holdsKeys: boolean
  holdCheckMs: number
  nonRetryable: readonly NonRetryable[] | ((error: unknown) => boolean)
  readsSideTopics: boolean
  createsTopics: boolean
  startFrom: 'earliest' | 'latest'
  instanceId: string
  type: string
  sessionTimeoutMs: number
  rebalanceGraceMs: number
  heartbeatMs: number
  topicCheckMs: number
}>

const retryDefault: readonly Delay[] = ['1s', '5s', '30s']
const delayMsMax = 30 * 24 * 3_600_000
const delaysMax = 100

/** Throws a KafkaWorkerOptionsError that names the option. */
export function readOptions(options: KafkaWorkerOptions, createId: () => string): WorkerSettings {
  const { group, handler, redrive } = options
  const topics = readTopics(options)
  checkOptions(options, topics)
  const nameDeadTopic = readDeadLetter(options.deadLetter ?? '{topic}.dlq')
  for (const topic of topics)
    require(!topics.includes(nameDeadTopic(topic)), `deadLetter: ${topic} would be its own dead-letter topic`)
  return {
    ...readNames(options),
    ...readDelays(options),
    topics,
    group,
    handler,
    nameDeadTopic,
    redrive: redrive === undefined ? null : { client: redrive.client, cluster: redrive.cluster ?? null },
    instanceId: options.instanceId ?? `${group}-${createId()}`,
  }
}

function readTopics({ topic, topics = topic }: KafkaWorkerOptions): readonly string[] {
  require(topic === undefined || topics === topic, 'topics: give either topic or topics')
  return typeof topics === 'string' ? [topics] : (topics ?? [])
}

function checkOptions(options: KafkaWorkerOptions, topics: readonly string[]): void {
  const { brokers, group, handler, redrive, holdKeys = false, retry = retryDefault } = options
  require(brokers?.length > 0, 'brokers: name at least one broker, as host:port')
  require(topics.length > 0 && !topics.includes(''), 'topics: name at least one topic')
  require(typeof group === 'string' && group !== '', 'group: name the consumer group')
  require(typeof handler === 'function', 'handler: give a function')
  require(retry.length <= delaysMax, `retry: at most ${delaysMax} delays`)
  const canHold = redrive?.client !== undefined && redrive.cluster !== undefined
  require(!holdKeys || canHold, 'holdKeys: needs redrive with client and cluster')
}

function readNames(options: KafkaWorkerOptions) {
  return {
    brokers: options.brokers,
    connection: options.connection ?? {},
    type: options.type ?? options.group,
    nonRetryable: options.nonRetryable ?? [],
    holdsKeys: options.holdKeys ?? false,
    readsSideTopics: options.sideTopics ?? true,
    createsTopics: options.createTopics ?? true,
    startFrom: options.startFrom ?? 'earliest',
  }
}

function readDelays({ retry = retryDefault, ...options }: KafkaWorkerOptions) {
  const sessionTimeoutMs = readDelay('sessionTimeout', options.sessionTimeout ?? '30s', 1)
  const graceDefaultMs = Math.floor(sessionTimeoutMs / 3)
  return {
    sessionTimeoutMs,
    delaysMs: retry.map((delay, at) => readDelay(`retry[${at}]`, delay, 0)),
    waitMsMax: readDelay('waitMax', options.waitMax ?? '30s', 0),
    holdCheckMs: readDelay('holdCheck', options.holdCheck ?? '5s', 1),
    rebalanceGraceMs: readDelay('rebalanceGrace', options.rebalanceGrace ?? graceDefaultMs, 0),
    topicCheckMs: readDelay('topicCheck', options.topicCheck ?? '30s', 1),
    heartbeatMs: readDelay('heartbeatInterval', options.heartbeatInterval ?? '10s', 1),
  }
}

function require(isGiven: boolean, problem: string): void {
  if (!isGiven) throw new KafkaWorkerOptionsError(problem)
}

function readDeadLetter(deadLetter: string | ((topic: string) => string)): (topic: string) => string {
  if (typeof deadLetter === 'function') return deadLetter
  return (topic) => deadLetter.replaceAll('{topic}', topic)
}

const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

function readDelay(name: string, delay: Delay, msMin: number): number {
  const ms = typeof delay === 'number' ? delay : parseDelay(delay)
  if (Number.isFinite(ms) && ms >= msMin && ms <= delayMsMax) return ms
  throw new KafkaWorkerOptionsError(
    `${name}: ${JSON.stringify(delay)} is not a duration from ${msMin} ms to 30d, such as "30s" or "5m"`,
  )
}

function parseDelay(text: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)]
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) return Number.NaN
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (unitsMs[unit ?? ''] ?? Number.NaN), 0)
}

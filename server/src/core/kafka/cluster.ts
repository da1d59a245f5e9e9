/**
 * A Kafka cluster as it is configured. `Secret` is a text that nobody may see: in the settings a secret or a
 * reference to one, in the driver a function that reads it.
 */
import type { ReplayMode } from './replay-queues.ts'
import type { ClassRule } from './topic-patterns.ts'

export const saslMechanisms = ['plain', 'scram-sha-256', 'scram-sha-512'] as const

export type KafkaCluster<Secret> = Readonly<{
  name: string
  /** `host:port` of the brokers to start from. */
  brokers: readonly string[]
  tls: KafkaTls<Secret> | null
  sasl: KafkaSasl<Secret> | null
  /** Patterns of the dead-letter topics. */
  topics: readonly string[]
  topicsIgnored: readonly string[]
  /** The consumer group of the bridge. */
  group: string
  /** Kafka gives the partitions of a server that crashed to others after this time. */
  sessionTimeoutMs: number
  /** The name of the dead queue of a topic, with `{topic}` and `{cluster}`. */
  queue: string
  classes: readonly ClassRule[]
  /** How a redrive is sent that does not say how. */
  replay: ReplayMode
  /** Whether missing side topics may be created. */
  mayCreateTopics: boolean
  /** Whether a redriven record keeps the headers that describe its failure. */
  keepsErrorHeaders: boolean
}>
export type KafkaTls<Secret> = Readonly<{
  ca: Secret | null
  cert: Secret | null
  key: Secret | null
  serverName: string | null
}>
export type KafkaSasl<Secret> = Readonly<{
  mechanism: (typeof saslMechanisms)[number]
  username: string
  password: Secret
}>

/** Reads a secret. It is read again for each connection, because it can be rotated. */
export type ReadText = () => Promise<string>

/** The same cluster with its secrets replaced. */
export function mapSecrets<From, To>(
  cluster: KafkaCluster<From>,
  replace: (secret: From) => To,
): KafkaCluster<To> {
  const { tls, sasl } = cluster
  const replaceOne = (secret: From | null) => (secret === null ? null : replace(secret))
  return {
    ...cluster,
    tls: tls && { ...tls, ca: replaceOne(tls.ca), cert: replaceOne(tls.cert), key: replaceOne(tls.key) },
    sasl: sasl && { ...sasl, password: replace(sasl.password) },
  }
}

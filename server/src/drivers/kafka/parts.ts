import type { KafkaCluster, ReadText } from '../../core/kafka/cluster.ts'
import type { Clock } from '../../core/time/instant.ts'
import type { Tracing } from '../../core/trace/tracing.ts'
import type { Engine } from '../../engine/engine.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'

export type Cluster = KafkaCluster<ReadText>

/** Dependencies of the Kafka driver. */
export type KafkaParts = Readonly<{
  clusters: readonly Cluster[]
  /** Throws STORE_UNAVAILABLE while the store cannot be reached. */
  engine: () => Engine
  /** Throws STORE_UNAVAILABLE while the store cannot be reached. */
  storage: () => StoreReads
  clock: Clock
  /** A unique name of this server. */
  owner: string
  intervals: KafkaIntervals
  /** Undefined: no spans are created. */
  tracing?: Tracing
  log: KafkaLog
}>

export type KafkaIntervals = Readonly<{
  discoveryMs: number
  proofMs: number
  proofGraceMs: number
  proofTimeoutMs: number
  lagMs: number
  backoffMsMax: number
}>

/** The subset of a pino logger that is used here. */
export interface KafkaLog {
  info(fields: object, sentence: string): void
  warn(fields: object, sentence: string): void
}

/** The actor of audit rows that the driver causes. */
export const kafkaActor = 'kafka'

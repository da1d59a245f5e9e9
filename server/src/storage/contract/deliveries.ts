/**
 * Delivery of webhook jobs: the state of each consumer, the attempts, and figures per minute.
 *
 * The state is a document with a version, like a campaign: drivers/webhook decides, a store keeps it.
 * Attempts are written in the transaction of their outcome.
 */
import type { Instant } from '../../core/time/instant.ts'
import type { PushErrorKind } from '../../core/webhook/attempt.ts'
import type { ConsumerDelivery } from '../../core/webhook/delivery/consumer-delivery.ts'
import type { SigningSecrets } from '../../core/webhook/signature.ts'
import type { AuditEntry } from './audit.ts'
import type { Consumer } from './webhooks.ts'

export type DeliveryCommand = PutDelivery | RecordAttempts | RecordDeliveryFigures | PruneDeliveries

export type DeliveryResults = {
  'put-delivery': { isPut: boolean }
  'record-attempts': undefined
  'record-delivery-figures': undefined
  'prune-deliveries': { removed: number }
}

export interface DeliveryStore {
  /** Push consumers. With `changedSince`: all consumers that changed then or later, or whose delivery did. */
  listDeliveries(query: Readonly<{ changedSince?: Instant }>): Promise<readonly StoredDelivery[]>
  getDelivery(channelId: string, consumerId: string): Promise<StoredDelivery | null>
  /** Newest first. */
  listAttempts(query: AttemptsQuery): Promise<readonly StoredAttempt[]>
  /** The servers that pushed in the minutes from `since` on. */
  listDeliveryWriters(query: Readonly<{ since: Instant }>): Promise<readonly string[]>
  /** The sums of the minutes from `since` on, by the number of the consumer. */
  sumDeliveryFigures(query: FiguresQuery): Promise<readonly ConsumerFigures[]>
}

export type StoredDelivery = Readonly<{
  consumer: Consumer
  /** 0: nothing is stored for this consumer yet. */
  version: number
  /** Null: the defaults. */
  delivery: ConsumerDelivery | null
  secrets: SigningSecrets | null
}>

/**
 * Stores the delivery of a consumer if its stored version is `version` (0: there is none yet), and adds 1 to
 * the version.
 */
export type PutDelivery = Readonly<{
  op: 'put-delivery'
  consumer: number
  version: number
  document: ConsumerDelivery
  /** Undefined: the stored secrets stay. */
  secrets?: SigningSecrets
  now: Instant
  /** For observers: what happened to the consumer. */
  change?: DeliveryChange
  /** An audit row that is written if the change is stored. */
  entry?: AuditEntry
  /** Reject the whole write with CONSUMER_CHANGED if the stored version is another one. */
  isRequired?: boolean
}>

/** The kind of a change, for observers. */
export type DeliveryChange =
  | 'breaker-opened'
  | 'breaker-closed'
  | 'disabled'
  | 'enabled'
  | 'paused'
  | 'resumed'
  | 'secret-rotated'
  | 'settings-changed'

export type RecordAttempts = Readonly<{ op: 'record-attempts'; attempts: readonly NewAttempt[] }>

export type NewAttempt = Readonly<{
  consumer: number
  /** The id of the job, an xid that starts with its message (core/webhook/job-id.ts). Empty: a test. */
  job: string
  /** 1, 2, … since the job was created or redriven. */
  ordinal: number
  startedAt: Instant
  latencyUs: number
  address: string | null
  /** Null: no response arrived. */
  status: number | null
  contentType: string | null
  body: Uint8Array | null
  isTruncated: boolean
  /** Null: delivered. */
  failure: Readonly<{ kind: PushErrorKind; errorClass: string; errorCode: string; message: string }> | null
}>

/** `number`: the order of the attempts. */
export type StoredAttempt = NewAttempt & Readonly<{ number: number }>

export type AttemptsQuery = Readonly<{
  /** At least one of the two is given. */
  consumer?: number
  /** The first and the last id. */
  jobs?: Readonly<{ from: string; to: string }>
  /** Only attempts with smaller numbers. */
  beforeNumber?: number
  countMax: number
}>

/**
 * The figures of one minute of one server, as they are now: they replace those that the same writer recorded
 * before.
 */
export type RecordDeliveryFigures = Readonly<{
  op: 'record-delivery-figures'
  writer: string
  figures: readonly Readonly<{ consumer: number; minute: Instant } & DeliveryFigures>[]
}>

export type DeliveryFigures = Readonly<{
  delivered: number
  failed: number
  /** Attempts by latency (core/webhook/delivery/latency.ts). */
  latencies: readonly number[]
}>

export type FiguresQuery = Readonly<{ since: Instant; consumer?: number }>
export type ConsumerFigures = Readonly<{ consumer: number } & DeliveryFigures>

/** Removes old attempts and figures, and what deleted consumers left. At most `countMax` attempts. */
export type PruneDeliveries = Readonly<{ op: 'prune-deliveries'; before: Instant; countMax: number }>

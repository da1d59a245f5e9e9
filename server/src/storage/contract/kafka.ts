/**
 * The state of the Kafka driver: how far it has read each partition of a dead-letter topic, and the records
 * that it sent to Kafka for redriven letters until their outcome is known.
 *
 * A position belongs to one claim at a time. Each claim of a partition gets a larger epoch, and a write with
 * an older epoch, or from another offset, is rejected. So two bridges that both consider themselves the owner
 * of a partition cannot store a record twice, whatever Kafka tells them.
 */
import type { LetterId, QueueName } from '../../core/ids/ids.ts'
import type { Failure } from '../../core/items/item.ts'
import type { Instant } from '../../core/time/instant.ts'

export type KafkaCommand =
  | ClaimKafkaPartitions
  | AdvanceKafkaPositions
  | ReturnLetters
  | AnnounceKafkaReplays
  | RecordKafkaReplays
  | PassKafkaReplays
  | ForgetKafkaReplays

export type KafkaResults = {
  'claim-kafka-partitions': readonly KafkaPosition[]
  'advance-kafka-positions': undefined
  'return-letters': readonly ReturnResult[]
  'announce-kafka-replays': undefined
  'record-kafka-replays': readonly RecordReplayResult[]
  'pass-kafka-replays': { passed: number }
  'forget-kafka-replays': undefined
}

export interface KafkaStore {
  /** All positions of a bridge, by topic and partition. */
  listKafkaPositions(query: KafkaPositionsQuery): Promise<readonly KafkaPosition[]>
  listKafkaReplays(query: KafkaReplaysQuery): Promise<readonly KafkaReplay[]>
  /** The partitions that have records whose group did not pass them yet. */
  listUnpassedPartitions(query: UnpassedPartitionsQuery): Promise<readonly UnpassedPartition[]>
}

/** `group`: the consumer group of the bridge. */
export type KafkaPositionsQuery = Readonly<{ cluster: string; group: string }>

export type KafkaPosition = Readonly<{
  topic: string
  partition: number
  /** The id of the topic: a topic that is deleted and created again has another id and starts at offset 0. */
  topicId: string
  /** How often the topic was created again since it was first read. */
  incarnation: number
  /** The offset of the next record to read; null: the earliest that Kafka has. */
  nextOffset: number | null
  epoch: number
  owner: string
  updatedAt: Instant
  /** The records of this partition that were read. */
  recordCount: number
}>

/** Takes over partitions. The result has their order. */
export type ClaimKafkaPartitions = Readonly<{
  op: 'claim-kafka-partitions'
  cluster: string
  group: string
  owner: string
  partitions: readonly Readonly<{ topic: string; partition: number; topicId: string }>[]
  now: Instant
}>

/**
 * Moves positions forward. Rejects the whole write with KAFKA_PARTITION_LOST if a position has another epoch,
 * or is not at `from`.
 */
export type AdvanceKafkaPositions = Readonly<{
  op: 'advance-kafka-positions'
  cluster: string
  group: string
  positions: readonly KafkaAdvance[]
  now: Instant
}>
export type KafkaAdvance = Readonly<{
  topic: string
  partition: number
  epoch: number
  from: number | null
  to: number
  /** The number of records between the two offsets. Offsets have gaps. */
  recordCount: number
}>

/**
 * Returns letters whose redriven record died again. The redrive with this number ends as failed; a letter
 * whose redrive has already ended as resolved or unknown becomes open again. Rejects the whole write with
 * LETTER_NOT_FOUND if a letter is not live, because it was archived or deleted since it was read, or if the
 * redrive of a guess has failed in the meantime: then the record is the death of another one.
 */
export type ReturnLetters = Readonly<{
  op: 'return-letters'
  returns: readonly LetterReturn[]
  now: Instant
}>
/** `isGuess`: the record does not name its redrive; its place or its bytes are those of the redrive. */
export type LetterReturn = Readonly<{
  letterId: LetterId
  number: number
  isGuess?: boolean
  failure: Failure
}>
/** `repeated`: this redrive had already ended as failed, or the letter was discarded; nothing changed. */
export type ReturnResult = Readonly<{ letterId: LetterId; outcome: 'returned' | 'repeated' }>

/**
 * Stores records before they are sent, with the offset -1. A record can die before its place is recorded, and
 * is then recognised by its content.
 */
export type AnnounceKafkaReplays = Readonly<{
  op: 'announce-kafka-replays'
  replays: readonly Omit<KafkaRecordSent, 'partition' | 'offset'>[]
  now: Instant
}>

/**
 * Records where announced records are: removes each item from its queue, where it counts as completed,
 * without ending the redrive of its letter. An item that is not leased any more stays as it is. The
 * announcement of a record that has died in the meantime is gone, and so nothing waits for its outcome.
 */
export type RecordKafkaReplays = Readonly<{
  op: 'record-kafka-replays'
  queue: QueueName
  partition: number
  replays: readonly RecordedReplay[]
  now: Instant
}>
export type RecordedReplay = Readonly<{
  itemId: string
  letterId: LetterId
  number: number
  partition: number
  offset: number
}>
export type RecordReplayResult = Readonly<{ letterId: LetterId; isRecorded: boolean }>

export type KafkaRecordSent = Readonly<{
  letterId: LetterId
  /** Ordinal of the redrive of the letter, starting at 1. */
  number: number
  cluster: string
  topic: string
  partition: number
  /** -1: the record was announced, and it is not known yet whether it was sent. */
  offset: number
  /** The consumer group whose progress proves that the record was processed; empty: unknown. */
  group: string
  /** Digest of key and value, to recognise the record without its headers. */
  contentHash: string
}>
/** A record whose outcome is not known yet. */
export type KafkaReplay = KafkaRecordSent &
  Readonly<{
    sentAt: Instant
    /** When the committed offset of the group was first seen behind the record; null: not yet. */
    passedAt: Instant | null
  }>

/** Marks records whose group has passed them, lowest offsets first, at most `countMax`. */
export type PassKafkaReplays = Readonly<{
  op: 'pass-kafka-replays'
  cluster: string
  group: string
  topic: string
  partition: number
  /** The committed offset of the group: it passed all records before it. */
  committed: number
  countMax: number
  now: Instant
}>

/** Deletes the rows of replays that have ended. */
export type ForgetKafkaReplays = Readonly<{
  op: 'forget-kafka-replays'
  replays: readonly Readonly<{ letterId: LetterId; number: number }>[]
}>

/** `passed`: in the order of `passedAt`. `sent`: in the order of `sentAt`. Both bounds are included. */
export type KafkaReplaysQuery = Readonly<
  { cluster: string; countMax: number } & (
    | { by: 'passed' | 'sent'; until: Instant; after?: Readonly<{ at: Instant; letterId: LetterId }> }
    | { by: 'letter'; letterIds: readonly LetterId[] }
    | { by: 'record'; records: readonly Readonly<{ topic: string; partition: number; offset: number }>[] }
    | { by: 'content'; contentHashes: readonly string[] }
  )
>
export type UnpassedPartitionsQuery = Readonly<{ cluster: string; countMax: number }>
export type UnpassedPartition = Readonly<{ group: string; topic: string; partition: number }>

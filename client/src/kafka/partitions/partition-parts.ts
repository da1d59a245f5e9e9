import type { Claim, OffsetCommitter } from '../cluster/offset-committer.ts'
import type { DeadLetterEvent, RetryEvent, WorkerErrorContext, WorkerSettings } from '../options.ts'
import type { KafkaRecord } from '../records/kafka-record.ts'
import type { Attempts } from './attempts.ts'
import type { ParkedQueue } from './parked-records.ts'
import type { Progress } from './progress-metadata.ts'

export type WorkerCounts = {
  processed: number
  /** Failed attempts. */
  failed: number
  deadLettered: number
  /** Records that Redrive stored, because they wait long or their key is held. */
  parked: number
  /** Redriven records of other groups. */
  skipped: number
}

export type WorkerEvents = Readonly<{
  onRetry(event: RetryEvent): void
  onDeadLetter(event: DeadLetterEvent): void
  onError(error: unknown, context: WorkerErrorContext): void
}>

/** Everything that the work on a partition needs. */
export type PartitionParts = Readonly<{
  claim: Claim
  /** Where the last worker ended; `isKnown` false: its metadata are missing. */
  start: Progress & Readonly<{ isKnown: boolean }>
  settings: WorkerSettings
  events: WorkerEvents
  counts: WorkerCounts
  committer: OffsetCommitter
  nowMs(): number
  parkedQueue: ParkedQueue | null
  deadLetters: DeadLetters
  /** A record was processed, for heartbeats. */
  onProcessed(): void
}>

export interface DeadLetters {
  /** Resolves when Kafka has acknowledged the dead letter. Returns its topic. */
  send(record: KafkaRecord, attempts: Attempts): Promise<string>
}

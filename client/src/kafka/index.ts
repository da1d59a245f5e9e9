export { createKafkaWorker, type KafkaWorker, type PartitionState } from './create-kafka-worker.ts'
export {
  DeserializationError,
  KafkaWorkerOptionsError,
  type NonRetryable,
  NonRetryableError,
  ValidationError,
} from './errors.ts'
export type {
  DeadLetterEvent,
  Delay,
  KafkaConnection,
  KafkaWorkerOptions,
  RecordContext,
  RecordHandler,
  RetryEvent,
  WorkerErrorContext,
} from './options.ts'
export type { WorkerCounts } from './partitions/partition-parts.ts'
export type { KafkaRecord } from './records/kafka-record.ts'

export type { CallOptions } from './caller.ts'
export { type Client, type ClientOptions, createClient, type Extended } from './client.ts'
export type { Clock } from './clock.ts'
export { RedriveError } from './error.ts'
export { type ImportedItem, LeasedItem, type NewItem, type Payload, StoredItem } from './item.ts'
export type { ItemFailure } from './item-failure.ts'
export type {
  ClearQuery,
  ItemsQuery,
  Lease,
  LeaseOptions,
  ProduceOptions,
  RetriedItem,
  RetryOptions,
} from './queue-calls.ts'
export type { NewQueue, QueueInfo, QueueUpdate } from './queue-info.ts'
export type { PartitionStats, QueueStats } from './queue-stats.ts'
export type { Time } from './time.ts'
export type {
  ErrorBody,
  Health,
  HealthCheck,
  QueuesPage,
  QueueView,
  RetryView,
  ServerInfo,
} from './wire.ts'
export { Dead, RetryLater } from './worker/outcome.ts'
export type {
  Handler,
  HandlerContext,
  TroubleContext,
  Worker,
  WorkerCounts,
  WorkOptions,
} from './worker/worker.ts'

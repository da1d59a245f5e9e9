export type { CallOptions } from './caller.ts'
export type { CampaignCalls } from './campaign-calls.ts'
export { type Client, type ClientOptions, createClient } from './client.ts'
export type { Clock } from './clock.ts'
export { RedriveError } from './error.ts'
export {
  type ImportedItem,
  type KeyedItem,
  LeasedItem,
  type NewItem,
  type Payload,
  StoredItem,
} from './item.ts'
export type { ItemFailure } from './item-failure.ts'
export type { Edit, LetterCalls, RedriveOptions } from './letter-calls.ts'
export type {
  ArchiveFilter,
  ArchivePage,
  AuditEntry,
  AuditPage,
  Campaign,
  CampaignLetterState,
  CampaignLettersPage,
  CampaignPace,
  CampaignPreview,
  CampaignSelection,
  CampaignsPage,
  CapturedLetter,
  ChangedLetter,
  CountedBy,
  CountedFilter,
  DiscardedLetters,
  Envelope,
  ExportEnd,
  ExportedLetter,
  GroupsPage,
  LetterCounts,
  LetterDetail,
  LetterEdit,
  LetterFailure,
  LetterFilter,
  LetterGroup,
  LetterHeader,
  LetterOrder,
  LetterOrigin,
  LetterPayload,
  LetterRedrive,
  LetterStatus,
  LetterSummary,
  LettersPage,
  NewCampaign,
  Page,
  PayloadForm,
  RestoredLetters,
  SentLetter,
  SentLetters,
} from './letter-wire.ts'
export type {
  ClearQuery,
  ItemsQuery,
  Lease,
  LeaseOptions,
  ProduceOptions,
  QueueCalls,
  RetriedItem,
  RetryOptions,
} from './queue-calls.ts'
export type { NewQueue, QueueInfo, QueueUpdate } from './queue-info.ts'
export type { PartitionStats, QueueStats } from './queue-stats.ts'
export type { Time } from './time.ts'
export type { CareOptions, Extended, ProducedOnce, V1Calls } from './v1-calls.ts'
export type {
  ErrorBody,
  Health,
  HealthCheck,
  PolicyChange,
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

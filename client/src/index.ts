export type { AdminCalls, AuditedOptions, ClearQuery } from './admin-calls.ts'
export type { CallOptions } from './caller.ts'
export type { CampaignCalls } from './campaign-calls.ts'
export { type Client, type ClientOptions, createClient } from './client.ts'
export type { Clock } from './clock.ts'
export type { Content, MessageHeader, MessageKey, Payload } from './content.ts'
export { RedriveError } from './error.ts'
export type { GroupCalls, TitleChange } from './group-calls.ts'
export type {
  Cause,
  CauseReport,
  CausesPage,
  GroupingRule,
  GroupingRulesPreview,
  GroupJob,
  GroupJobsPage,
  GroupReport,
  GroupsPage,
  LetterGroup,
} from './group-wire.ts'
export {
  type ImportedItem,
  type KeyedItem,
  LeasedItem,
  type NewItem,
  StoredItem,
} from './item.ts'
export type {
  ExtendedLeases,
  ItemCalls,
  Lease,
  LeaseOptions,
  ProduceOnceResult,
  RetriedItem,
  RetryOptions,
} from './item-calls.ts'
export type { ItemFailure } from './item-failure.ts'
export type { Edit, LetterCalls, RedriveOptions, SelectionGuards } from './letter-calls.ts'
export type {
  ArchiveFilter,
  ArchivePage,
  AuditEntry,
  AuditPage,
  AuditQuery,
  Campaign,
  CampaignFilter,
  CampaignLetterState,
  CampaignLettersPage,
  CampaignPace,
  CampaignPreview,
  CampaignPreviewRequest,
  CampaignReport,
  CampaignSelection,
  CampaignsPage,
  CancelResults,
  CaptureResult,
  CountedBy,
  CountedFilter,
  DiscardResults,
  Envelope,
  ExportEnd,
  ExportedLetter,
  LetterChangeResult,
  LetterCounts,
  LetterDetail,
  LetterEdit,
  LetterFailure,
  LetterFilter,
  LetterHeader,
  LetterKey,
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
  RedriveResult,
  RedriveResults,
  RestoreResults,
} from './letter-wire.ts'
export type {
  CreatedQueue,
  NewQueue,
  PolicyChanges,
  Queue,
  QueuePolicy,
  QueuesPage,
  QueuesQuery,
  RetryPolicy,
} from './queue.ts'
export type { ProduceOptions } from './queue-api.ts'
export type { PartitionStats, QueueStats } from './queue-stats.ts'
export type { ItemsQuery, StoredItemCalls } from './stored-item-calls.ts'
export type { Time } from './time.ts'
export {
  type VerifiedWebhook,
  type VerifyOptions,
  verifyWebhook,
  type WebhookHeaders,
  type WebhookProblem,
  WebhookVerificationError,
} from './verify-webhook.ts'
export type { ErrorBody, Health, HealthCheck, ServerInfo } from './wire.ts'
export { Dead, RetryLater } from './worker/outcome.ts'
export type {
  ErrorContext,
  Handler,
  HandlerContext,
  Worker,
  WorkerCounts,
  WorkOptions,
} from './worker/worker.ts'

export type { AlertCalls, NotedOptions } from './alerts/alert-calls.ts'
export type {
  Alert,
  AlertDecision,
  AlertSeverity,
  AlertState,
  AlertsPage,
  AlertsQuery,
} from './alerts/alert-wire.ts'
export type { AlertChannelCalls } from './alerts/channel-calls.ts'
export type {
  AlertChannel,
  AlertChannelKind,
  AlertChannelSettings,
  AlertChannelTest,
  NewAlertChannel,
} from './alerts/channel-wire.ts'
export type { AlertRuleCalls } from './alerts/rule-calls.ts'
export type { AlertCondition, AlertRule, NewAlertRule } from './alerts/rule-wire.ts'
export { type Client, type ClientOptions, createClient } from './client.ts'
export type { CallOptions } from './http/caller.ts'
export type { Clock } from './http/clock.ts'
export type { Content, MessageHeader, MessageKey, Payload } from './http/content.ts'
export { RedriveError } from './http/error.ts'
export type { Time } from './http/time.ts'
export type { CampaignCalls } from './letters/campaign-calls.ts'
export type { GroupCalls, TitleChange } from './letters/group-calls.ts'
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
} from './letters/group-wire.ts'
export type { Edit, LetterCalls, RedriveOptions, SelectionGuards } from './letters/letter-calls.ts'
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
} from './letters/letter-wire.ts'
export type { AdminCalls, AuditedOptions, ClearQuery } from './queues/admin-calls.ts'
export {
  type ImportedItem,
  type KeyedItem,
  LeasedItem,
  type NewItem,
  StoredItem,
} from './queues/item.ts'
export type {
  ExtendedLeases,
  ItemCalls,
  Lease,
  LeaseOptions,
  ProduceOnceResult,
  RetriedItem,
  RetryOptions,
} from './queues/item-calls.ts'
export type { ItemFailure } from './queues/item-failure.ts'
export type {
  CreatedQueue,
  NewQueue,
  PolicyChanges,
  Queue,
  QueuePolicy,
  QueuesPage,
  QueuesQuery,
  RetryPolicy,
} from './queues/queue.ts'
export type { ProduceOptions } from './queues/queue-api.ts'
export type { PartitionStats, QueueStats } from './queues/queue-stats.ts'
export type { ItemsQuery, StoredItemCalls } from './queues/stored-item-calls.ts'
export {
  type VerifiedWebhook,
  type VerifyOptions,
  verifyWebhook,
  type WebhookHeaders,
  type WebhookProblem,
  WebhookVerificationError,
} from './verify-webhook.ts'
export type { ErrorBody, Health, HealthCheck, ServerInfo } from './wire.ts'
export {
  type Heartbeat,
  type HeartbeatOptions,
  type RedisClient,
  type SendHeartbeat,
  sendToRedis,
  startHeartbeat,
  type WorkerHeartbeat,
  type WorkerStatus,
} from './worker/heartbeat.ts'
export { type HeartbeatCalls, type SentHeartbeat, sendToServer } from './worker/heartbeat-calls.ts'
export { Dead, RetryLater } from './worker/outcome.ts'
export type {
  ErrorContext,
  Handler,
  HandlerContext,
  Worker,
  WorkerCounts,
  WorkOptions,
} from './worker/worker.ts'
export type { WorkerHeartbeatOptions } from './worker/worker-heartbeat.ts'

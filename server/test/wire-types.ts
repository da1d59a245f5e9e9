/**
 * Compile-time tests: the types of the client must equal the schemas of the server. There is nothing to run;
 * the type check of `npm run check` fails at the line of each type that differs.
 *
 * - An answer must have exactly the same type on both sides (`SameType`).
 * - A request of the client must be accepted by the schema, and may miss none of its fields (`ValidRequest`).
 *   Its types may be narrower: a status is one of five words in the client, and any text in the schema, which
 *   is checked later.
 */
import type { Static, TSchema } from 'typebox'
import type * as client from '../../client/src/index.ts'
import type {
  WireCancelledLease,
  WireExtendedLeases,
  WireNewQueue,
  WirePolicyChanges,
  WireProducedItems,
  WireQueue,
  WireQueuesPage,
} from '../../client/src/wire.ts'
import type { alertRuleRoutes } from '../src/api/v1/alerts/alert-rules.ts'
import type { alertRoutes } from '../src/api/v1/alerts/alerts.ts'
import type { alertChannelRoutes } from '../src/api/v1/alerts/channels.ts'
import type { auditRoutes } from '../src/api/v1/audit/audit.ts'
import type { campaignRoutes } from '../src/api/v1/campaigns/campaigns.ts'
import type { causeRoutes } from '../src/api/v1/causes/causes.ts'
import type { groupJobRoutes } from '../src/api/v1/causes/group-jobs.ts'
import type { groupingRuleRoutes } from '../src/api/v1/causes/grouping-rules.ts'
import type { groupRoutes } from '../src/api/v1/causes/groups.ts'
import type { ErrorBody } from '../src/api/v1/dialect.ts'
import type { infoRoutes } from '../src/api/v1/info.ts'
import type { archiveRoutes } from '../src/api/v1/letters/archive.ts'
import type { captureRoutes } from '../src/api/v1/letters/capture.ts'
import type { envelopeFields } from '../src/api/v1/letters/capture-body.ts'
import type { letterCountRoutes } from '../src/api/v1/letters/counts.ts'
import type { discardRoutes } from '../src/api/v1/letters/discard.ts'
import type { exportRoutes } from '../src/api/v1/letters/export.ts'
import type { ExportEndView, ExportedLetterView } from '../src/api/v1/letters/export-lines.ts'
import type { letterRoutes } from '../src/api/v1/letters/letters.ts'
import type { redriveRoutes } from '../src/api/v1/letters/redrive.ts'
import type { undoRoutes } from '../src/api/v1/letters/undo.ts'
import type { queueAdminRoutes } from '../src/api/v1/queues/queue-admin.ts'
import type { queueItemRoutes } from '../src/api/v1/queues/queue-items.ts'
import type { queueRoutes } from '../src/api/v1/queues/queues.ts'
import type { HealthBody } from '../src/api/watch/health.ts'

type Routes =
  | (typeof infoRoutes)[number]
  | (typeof queueRoutes)[number]
  | (typeof queueAdminRoutes)[number]
  | (typeof queueItemRoutes)[number]
  | (typeof captureRoutes)[number]
  | (typeof letterRoutes)[number]
  | (typeof letterCountRoutes)[number]
  | (typeof redriveRoutes)[number]
  | (typeof discardRoutes)[number]
  | (typeof undoRoutes)[number]
  | (typeof archiveRoutes)[number]
  | (typeof exportRoutes)[number]
  | (typeof groupRoutes)[number]
  | (typeof causeRoutes)[number]
  | (typeof groupJobRoutes)[number]
  | (typeof groupingRuleRoutes)[number]
  | (typeof campaignRoutes)[number]
  | (typeof auditRoutes)[number]
  | (typeof alertRoutes)[number]
  | (typeof alertRuleRoutes)[number]
  | (typeof alertChannelRoutes)[number]

/** A route can have several paths: then its `path` is a union. */
type RouteAt<M extends string, P extends string, R = Routes> =
  R extends Readonly<{ method: M; path: infer Q }> ? (P extends Q ? R : never) : never
type SchemaOf<M extends string, P extends string> = RouteAt<M, P>['schema']
type StaticOf<S> = S extends TSchema ? Static<S> : never
type Answer<M extends string, P extends string> = StaticOf<SchemaOf<M, P>['response'][200]>
type Body<M extends string, P extends string> =
  SchemaOf<M, P> extends Readonly<{ body: infer B }> ? StaticOf<B> : never
type Query<P extends string> =
  SchemaOf<'GET', P> extends Readonly<{ querystring: infer Q }> ? StaticOf<Q> : never

/** Removes `readonly` at every level and merges intersections, so that only the JSON itself is compared. */
type Plain<T> = T extends readonly (infer E)[]
  ? Plain<E>[]
  : T extends object
    ? { -readonly [K in keyof T]: Plain<T[K]> }
    : T
type IsIdentical<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** True, or both types, which the error message of the compiler then shows. */
type SameType<C, S> =
  IsIdentical<Plain<C>, Plain<S>> extends true ? true : Readonly<{ client: Plain<C>; server: Plain<S> }>
/** True, or the fields that only one side has, or both types. */
type ValidRequest<C, S> = [Exclude<keyof C, keyof S> | Exclude<keyof S, keyof C>] extends [never]
  ? Plain<C> extends Partial<Plain<S>>
    ? true
    : Readonly<{ client: Plain<C>; server: Plain<S> }>
  : Readonly<{ onlyInClient: Exclude<keyof C, keyof S>; onlyInServer: Exclude<keyof S, keyof C> }>
type Expect<T extends true> = T

export type ServerTests = [
  Expect<SameType<client.ServerInfo, Answer<'GET', '/api/v1/info'>>>,
  Expect<SameType<client.Health, Static<typeof HealthBody>>>,
  Expect<SameType<client.ErrorBody, Static<typeof ErrorBody>>>,
]

export type QueueTests = [
  Expect<SameType<WireQueue, Answer<'GET', '/api/v1/queues/{name}'>>>,
  Expect<SameType<WireQueuesPage, Answer<'GET', '/api/v1/queues'>>>,
  Expect<ValidRequest<client.QueuesQuery, Query<'/api/v1/queues'>>>,
  Expect<SameType<WireNewQueue, Answer<'POST', '/api/v1/queues'>>>,
  Expect<SameType<WireQueue, Answer<'PATCH', '/api/v1/queues/{name}'>>>,
  Expect<ValidRequest<WirePolicyChanges, Body<'PATCH', '/api/v1/queues/{name}'>['policy']>>,
  Expect<SameType<WireProducedItems, Answer<'POST', '/api/v1/queues/{name}/items'>>>,
  Expect<SameType<WireExtendedLeases, Answer<'POST', '/api/v1/queues/{name}/leases/extend'>>>,
  Expect<SameType<WireCancelledLease, Answer<'POST', '/api/v1/queues/{name}/leases/cancel'>>>,
]

type LettersQuery = client.LetterFilter & client.LetterOrder
type CountsQuery = Query<'/api/v1/letters/counts'>
type GroupsQuery = client.CountedFilter &
  client.Page &
  Readonly<{ include_empty?: boolean; lifecycle?: string | readonly string[] }>

export type LetterTests = [
  Expect<SameType<client.LettersPage, Answer<'GET', '/api/v1/letters'>>>,
  Expect<ValidRequest<LettersQuery & client.Page, Query<'/api/v1/letters'>>>,
  Expect<SameType<client.LetterDetail, Answer<'GET', '/api/v1/letters/{id}'>>>,
  Expect<SameType<client.PayloadForm, Query<'/api/v1/letters/{id}'>['payload_form']>>,
  Expect<ValidRequest<LettersQuery & Pick<client.Page, 'cursor'>, Query<'/api/v1/letters/export'>>>,
  Expect<SameType<client.ExportedLetter, ExportedLetterView>>,
  Expect<SameType<client.ExportEnd, ExportEndView>>,
  Expect<SameType<client.LetterCounts, Answer<'GET', '/api/v1/letters/counts'>>>,
  // The client joins `by` to a text.
  Expect<ValidRequest<client.CountedFilter, Omit<CountsQuery, 'by'>>>,
  Expect<SameType<keyof client.Envelope, keyof typeof envelopeFields>>,
  Expect<SameType<Readonly<{ letters: readonly client.CaptureResult[] }>, Answer<'POST', '/api/v1/letters'>>>,
  Expect<SameType<client.RedriveResults, Answer<'POST', '/api/v1/letters/redrive'>>>,
  Expect<
    SameType<
      client.RedriveResult & Readonly<{ edit: number | null }>,
      Answer<'POST', '/api/v1/letters/{id}/redrive'>
    >
  >,
  Expect<SameType<client.DiscardResults, Answer<'POST', '/api/v1/letters/discard'>>>,
  Expect<SameType<client.RestoreResults, Answer<'POST', '/api/v1/archive/restore'>>>,
  Expect<SameType<client.CancelResults, Answer<'POST', '/api/v1/letters/cancel-redrive'>>>,
  Expect<SameType<client.ArchivePage, Answer<'GET', '/api/v1/archive'>>>,
  Expect<ValidRequest<client.ArchiveFilter & client.Page, Query<'/api/v1/archive'>>>,
  Expect<SameType<client.LetterDetail, Answer<'GET', '/api/v1/archive/{id}'>>>,
]

export type GroupAndAuditTests = [
  Expect<SameType<client.GroupsPage, Answer<'GET', '/api/v1/groups'>>>,
  Expect<ValidRequest<GroupsQuery, Query<'/api/v1/groups'>>>,
  Expect<SameType<client.GroupReport, Answer<'GET', '/api/v1/groups/{id}'>>>,
  Expect<SameType<client.CausesPage, Answer<'GET', '/api/v1/causes'>>>,
  Expect<ValidRequest<client.CountedFilter & client.Page, Query<'/api/v1/causes'>>>,
  Expect<SameType<client.GroupJob, Answer<'GET', '/api/v1/group-jobs/{id}'>>>,
  Expect<SameType<client.GroupJobsPage, Answer<'GET', '/api/v1/group-jobs'>>>,
  Expect<
    SameType<client.GroupingRulesPreview, Answer<'POST', '/api/v1/queues/{name}/grouping-rules/preview'>>
  >,
  Expect<SameType<client.CauseReport, Answer<'GET', '/api/v1/causes/{id}'>>>,
  Expect<SameType<client.AuditPage, Answer<'GET', '/api/v1/audit'>>>,
  Expect<ValidRequest<client.AuditQuery & client.Page, Query<'/api/v1/audit'>>>,
]

export type CampaignTests = [
  Expect<
    SameType<Readonly<{ channels: readonly client.AlertChannel[] }>, Answer<'GET', '/api/v1/alerts/channels'>>
  >,
  Expect<SameType<client.AlertsPage, Answer<'GET', '/api/v1/alerts'>>>,
  Expect<ValidRequest<client.AlertsQuery, Query<'/api/v1/alerts'>>>,
  Expect<SameType<client.Alert, Answer<'POST', '/api/v1/alerts/{id}/mute'>>>,
  Expect<SameType<client.AlertRule, Answer<'PUT', '/api/v1/alerts/rules/{name}'>>>,
  Expect<
    ValidRequest<
      client.NewAlertRule & Readonly<{ reason?: string }>,
      Body<'PUT', '/api/v1/alerts/rules/{name}'>
    >
  >,
  Expect<SameType<client.AlertChannel, Answer<'PUT', '/api/v1/alerts/channels/{name}'>>>,
  Expect<
    ValidRequest<
      client.NewAlertChannel & Readonly<{ reason?: string }>,
      Body<'PUT', '/api/v1/alerts/channels/{name}'>
    >
  >,
  Expect<SameType<client.AlertChannelTest, Answer<'POST', '/api/v1/alerts/channels/{name}/test'>>>,
  Expect<SameType<client.CampaignPreview, Answer<'POST', '/api/v1/campaigns/preview'>>>,
  Expect<ValidRequest<client.CampaignPreviewRequest, Body<'POST', '/api/v1/campaigns/preview'>>>,
  Expect<ValidRequest<client.NewCampaign, Body<'POST', '/api/v1/campaigns'>>>,
  Expect<SameType<client.Campaign, Answer<'POST', '/api/v1/campaigns'>>>,
  Expect<SameType<client.CampaignsPage, Answer<'GET', '/api/v1/campaigns'>>>,
  Expect<SameType<client.CampaignReport, Answer<'GET', '/api/v1/campaigns/{id}'>>>,
  Expect<SameType<client.CampaignLettersPage, Answer<'GET', '/api/v1/campaigns/{id}/letters'>>>,
  Expect<
    ValidRequest<client.CampaignPace & Readonly<{ reason?: string }>, Body<'PATCH', '/api/v1/campaigns/{id}'>>
  >,
  Expect<SameType<client.Campaign, Answer<'PATCH', '/api/v1/campaigns/{id}'>>>,
  Expect<SameType<client.Campaign, Answer<'POST', '/api/v1/campaigns/{id}/pause'>>>,
]

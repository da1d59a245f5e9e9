/** The parts of a letter in answers: fields, failures, redrives and counts by status. */
import { type Static, Type } from 'typebox'
import { describeDiscard } from '../../../core/dead-letters/letter.ts'
import { toReasonSlug } from '../../../core/dead-letters/reason.ts'
import type { Failure, Item, Origin, RedriveRecord } from '../../../core/items/item.ts'
import type { LetterLabel } from '../../../letters/labels.ts'
import { letterStatuses, toLetterStatus } from '../../../ops/metrics/letter-status.ts'
import type { ListedState } from '../../../storage/contract/items.ts'
import type { ListedLetter } from '../../../storage/contract/letters.ts'
import { readTraceId } from '../../../storage/shared/letters/trace-id.ts'
import { component } from '../../http/openapi/annotations.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import {
  type HeaderView,
  KeyView,
  PayloadView,
  previewPayload,
  viewHeader,
  viewKey,
} from '../values/content-view.ts'
import { formatTimeOrNull, nullable, nullableTime, time } from '../values/schemas.ts'

const text = (description: string) => Type.String({ description })
const count = (description: string) => Type.Integer({ description })

const OriginView = component(
  'Origin',
  Type.Object({
    kind: Type.Enum(['queue', 'webhook', 'kafka', 'http'], { description: 'Kind of source.' }),
    name: text('The queue, the topic, or the channel and consumer.'),
    partition: nullable(Type.Integer(), 'The partition at the source.'),
    id: text('The id at the source: of the item or the job, or the offset.'),
    consumer_group: nullable(Type.String(), 'The Kafka consumer group.'),
    cluster: nullable(Type.String(), 'The Kafka cluster.'),
    created_at: time('When the message was created at its source.'),
  }),
)

const failureFields = {
  error_code: text('A short code of the failure, which filters compare exactly.'),
  slug: text(
    'The message reduced to one word. The newest failure has the word of its group, as in counts and filters.',
  ),
  error_class: text('The class of the error.'),
  message: text('The error message.'),
  attempts: count('Number of attempts before the item died.'),
  first_failed_at: time('When the first attempt failed.'),
  last_failed_at: time('When the last attempt failed.'),
  worker: text('The worker of the last attempt.'),
  fingerprint: nullable(
    Type.String(),
    'The name that the worker gave to the cause, which decides the group.',
  ),
}
const ShortFailureView = component('ShortFailure', Type.Object(failureFields))
export const FailureView = component(
  'Failure',
  Type.Object({ ...failureFields, stack: text('The stack trace.') }),
)

/** The fields that lists and single letters share. */
export const letterFields = {
  id: text('Id of the letter, which never changes.'),
  queue: text('The dead queue of the letter.'),
  status: Type.Enum([...letterStatuses], {
    description:
      'PENDING: waits for a redrive; RETRYING: a redrive or a lease is in progress; RESOLVED: processed; DEAD: no ' +
      'redrives left; DISCARDED: given up.',
  }),
  source_id: nullable(Type.String(), 'The identity at the source, unique in the dead queue.'),
  origin: nullable(OriginView, 'Where the letter comes from, and where a redrive sends it.'),
  group_id: nullable(Type.Integer(), 'The group of letters with the same cause.'),
  retry_count: count('Number of redrives that failed, over the life of the letter.'),
  requeue_count: count('Number of redrives that were started, over the life of the letter.'),
  dead_lettered_at: nullableTime('When the item became a dead letter.'),
  updated_at: time('When the letter last changed.'),
  ended_at: nullableTime('When it was RESOLVED, DEAD or DISCARDED. Retention counts from this time.'),
  last_redrive_at: nullableTime('When it was last redriven.'),
  next_redrive_at: nullableTime('When the policy redrives it next; null: not automatically.'),
  discard_reason: text('Why it was discarded.'),
  kind: text('Kind of the item, as produced.'),
  encoding: text('Encoding of the payload, as produced.'),
  reference: text('Reference of the item, as produced.'),
  key: KeyView,
  trace_id: nullable(Type.String(), 'The trace that the message belongs to, from its header traceparent.'),
}

export const LetterSummary = component(
  'LetterSummary',
  Type.Object({
    ...letterFields,
    failure: nullable(ShortFailureView, 'The newest failure. Its message may be cut.'),
    payload: PayloadView,
  }),
)
export type LetterSummary = Static<typeof LetterSummary>

export const RedriveView = component(
  'Redrive',
  Type.Object({
    number: count('Ordinal of this redrive of the letter, starting at 1.'),
    at: time('When it was redriven.'),
    actor: text('The person or program that redrove it.'),
    campaign: nullable(
      Type.Object({
        id: text('Id of the campaign.'),
        name: text('Name of the campaign; empty if it no longer exists.'),
        position: count('Position of the letter in the frozen set.'),
      }),
      'The campaign that redrove it.',
    ),
    target: Type.Object(
      {
        kind: Type.Enum(['queue', 'webhook', 'kafka', 'http'], { description: 'Kind of target.' }),
        name: text('The queue or topic.'),
        partition: nullable(Type.Integer(), 'The partition in the target.'),
        id: text('The id in the target.'),
      },
      { description: 'Where the copy was sent.' },
    ),
    edit: nullable(Type.Integer(), 'Number of the edited version that was sent; null: the original.'),
    outcome: nullable(
      Type.Enum(['resolved', 'failed', 'unknown', 'cancelled']),
      'Null while the redrive is in progress.',
    ),
    ended_at: nullableTime('When the outcome was known.'),
  }),
)

export const StatusCounts = component(
  'StatusCounts',
  Type.Object(
    {
      PENDING: Type.Integer(),
      RETRYING: Type.Integer(),
      RESOLVED: Type.Integer(),
      DEAD: Type.Integer(),
      DISCARDED: Type.Integer(),
    },
    { description: 'Number of letters by status.' },
  ),
)

const messageLengthMax = 1_000

/** `groupId`: the group that the letter is shown in. */
export function viewFields(
  item: Item,
  groupId: number | null,
): {
  [K in keyof typeof letterFields]: Static<(typeof letterFields)[K]>
} {
  const { letter } = item
  return {
    id: item.rootId,
    queue: item.queue,
    status: toLetterStatus(item.state),
    source_id: item.sourceId,
    origin: item.origin === null ? null : viewOrigin(item.origin),
    group_id: groupId,
    retry_count: item.retryCount,
    requeue_count: letter?.requeueCount ?? 0,
    dead_lettered_at: formatTimeOrNull(item.deadLetteredAt),
    updated_at: formatInstant(item.updatedAt),
    ended_at: 'endedAt' in item ? formatTimeOrNull(item.endedAt) : null,
    last_redrive_at: formatTimeOrNull(letter?.lastRedriveAt),
    next_redrive_at: formatTimeOrNull(letter?.nextRedriveAt),
    discard_reason: letter === null ? '' : describeDiscard(letter),
    kind: item.kind,
    encoding: item.encoding,
    reference: item.reference,
    key: viewKey(item.key),
    trace_id: readTraceId(item.headers) ?? null,
  }
}

export function viewSummary(item: ListedLetter, { slug, groupId }: LetterLabel): LetterSummary {
  const failure = item.failure === null ? null : viewShortFailure(item.failure, slug)
  return {
    ...viewFields(item, groupId),
    failure:
      failure === null
        ? null
        : { ...failure, message: failure.message.slice(0, messageLengthMax).toWellFormed() },
    payload: previewPayload(item.payload, item.payloadBytes),
  }
}

function viewOrigin(origin: Origin): Static<typeof OriginView> {
  const { createdAt, group, ...rest } = origin
  return { ...rest, consumer_group: group, created_at: formatInstant(createdAt) }
}

function viewShortFailure(failure: Failure, slug: string): Static<typeof ShortFailureView> {
  return {
    error_code: failure.errorCode,
    slug,
    error_class: failure.errorClass,
    message: failure.message,
    attempts: failure.attempts,
    first_failed_at: formatInstant(failure.firstFailedAt),
    last_failed_at: formatInstant(failure.lastFailedAt),
    worker: failure.worker,
    fingerprint: failure.fingerprint ?? null,
  }
}

function viewFailure(failure: Failure, slug: string): Static<typeof FailureView> {
  return { ...viewShortFailure(failure, slug), stack: failure.stack }
}

/** Newest first: the current failure has the slug of the group, earlier failures their own. */
export function viewFailures(item: Item, slug: string): Static<typeof FailureView>[] {
  const { failure, history } = item
  return [
    ...(failure === null ? [] : [viewFailure(failure, slug)]),
    ...history.map((before) => viewFailure(before, toReasonSlug(before.message))),
  ]
}

/** `campaignNames` maps ids of campaigns to their names. */
export function viewRedrives(
  { letter }: Pick<Item, 'letter'>,
  campaignNames: ReadonlyMap<string, string>,
): Static<typeof RedriveView>[] {
  return (letter?.redrives ?? []).map((record) => viewRedrive(record, campaignNames))
}

function viewRedrive(
  { campaign, target, ...record }: RedriveRecord,
  campaignNames: ReadonlyMap<string, string>,
): Static<typeof RedriveView> {
  return {
    number: record.number,
    at: formatInstant(record.at),
    actor: record.actor,
    campaign: campaign === null ? null : viewCampaignOfRedrive(campaign, campaignNames),
    target: { ...target },
    edit: record.edit,
    outcome: record.outcome,
    ended_at: formatTimeOrNull(record.endedAt),
  }
}

function viewCampaignOfRedrive(
  { id, position }: NonNullable<RedriveRecord['campaign']>,
  campaignNames: ReadonlyMap<string, string>,
): NonNullable<Static<typeof RedriveView>['campaign']> {
  return { id, name: campaignNames.get(id) ?? '', position: position }
}

export function viewHeaders(item: Pick<Item, 'headers'>): HeaderView[] {
  return item.headers.map(viewHeader)
}

/** Several states of the core have the same status. */
export function countByStatus(
  states: Readonly<Partial<Record<string, number>>>,
): Static<typeof StatusCounts> {
  const counts = { PENDING: 0, RETRYING: 0, RESOLVED: 0, DEAD: 0, DISCARDED: 0 }
  for (const [state, number = 0] of Object.entries(states))
    counts[toLetterStatus(state as ListedState)] += number
  return counts
}

import { type Static, Type } from 'typebox'
import type { Instant } from '../../../core/instant.ts'
import type { Failure, Item, Origin, RedriveRecord } from '../../../core/item.ts'
import { toReasonSlug } from '../../../core/reason.ts'
import { letterStatus, letterStatuses } from '../../../ops/letter-status.ts'
import type { ListedLetter } from '../../../storage/contract/letters.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { nullable } from '../values/cursor.ts'
import { base64Of, type HeaderView, textOf, viewHeader } from '../values/wire-bytes.ts'
import { PayloadPreview, previewPayload } from './payload-view.ts'

export const Time = Type.String({ format: 'date-time' })

const OriginView = Type.Object({
  kind: Type.Enum(['queue', 'webhook', 'kafka', 'http']),
  name: Type.String({ description: 'The queue, the topic, or the channel and consumer.' }),
  partition: nullable(Type.Integer()),
  id: Type.String({ description: "Its id there: the item's, the job's, or the offset." }),
  group: nullable(Type.String(), 'The consumer group.'),
  cluster: nullable(Type.String()),
  created_at: Time,
})

const failureFields = {
  reason: Type.String({ description: 'A code that is matched exactly.' }),
  slug: Type.String({
    description:
      'The message as one word; of the newest failure that of its group, as it is counted and filtered.',
  }),
  error_class: Type.String(),
  message: Type.String(),
  attempts: Type.Integer({ description: 'Before it died.' }),
  first_failed_at: Time,
  last_failed_at: Time,
  worker: Type.String(),
}
const ShortFailureView = Type.Object(failureFields)
export const FailureView = Type.Object({ ...failureFields, stack: Type.String() })

/** What the list shows; the detail has more. */
export const letterFields = {
  id: Type.String({ description: 'What the letter is known by, for its whole life.' }),
  queue: Type.String({ description: 'The dead queue that it is in.' }),
  status: Type.Enum([...letterStatuses]),
  source_id: nullable(Type.String(), 'What it is elsewhere; unique in its dead queue.'),
  origin: nullable(OriginView),
  group_id: nullable(Type.Integer(), 'Of letters with the same cause.'),
  retry_count: Type.Integer({ description: 'How many redrives came back, over its whole life.' }),
  requeue_count: Type.Integer({ description: 'How often it was sent back, whatever became of it.' }),
  created_at: nullable(Time, 'At its source.'),
  died_at: nullable(Time, 'When it was dead-lettered.'),
  updated_at: Time,
  ended_at: nullable(Time, 'When it was resolved, dead or discarded: the clock of retention.'),
  last_redrive_at: nullable(Time),
  next_redrive_at: nullable(
    Time,
    'When the policy of its dead queue sends it back; null: only when somebody does.',
  ),
  discard_reason: Type.String(),
  kind: Type.String({ description: 'As the item had it, like encoding and reference; empty for none.' }),
  encoding: Type.String(),
  reference: Type.String(),
  key: nullable(Type.String(), 'As text; null when it is not UTF-8, or there is none.'),
  key_base64: nullable(Type.String()),
}

export const LetterSummary = Type.Object({
  ...letterFields,
  failure: nullable(ShortFailureView, 'The newest one; the message may be cut.'),
  payload: PayloadPreview,
})
export type LetterSummary = Static<typeof LetterSummary>

export const RedriveView = Type.Object({
  number: Type.Integer({ description: '1, 2, … over the life of the letter.' }),
  at: Time,
  actor: Type.String(),
  campaign: nullable(Type.Object({ id: Type.String(), name: Type.String(), place: Type.Integer() })),
  target: Type.Object({
    kind: Type.Enum(['queue', 'webhook', 'kafka', 'http']),
    name: Type.String(),
    partition: nullable(Type.Integer()),
    id: Type.String({ description: 'What it was there.' }),
  }),
  edit: nullable(Type.Integer(), 'The edited version that was sent; null: the letter as it is.'),
  outcome: nullable(Type.Enum(['resolved', 'failed', 'unknown']), 'Null while it is under way.'),
  ended_at: nullable(Time),
})

const messageShown = 1_000

export function viewFields(item: Item): {
  [K in keyof typeof letterFields]: Static<(typeof letterFields)[K]>
} {
  const { letter } = item
  return {
    id: item.rootId,
    queue: item.queue,
    status: letterStatus(item.state),
    source_id: item.sourceId,
    origin: item.origin === null ? null : viewOrigin(item.origin),
    group_id: item.groupId,
    retry_count: item.redrives,
    requeue_count: letter?.requeues ?? 0,
    created_at: timeOrNull(item.origin?.createdAt),
    died_at: timeOrNull(item.diedAt),
    updated_at: formatInstant(item.updatedAt),
    ended_at: 'endedAt' in item ? timeOrNull(item.endedAt) : null,
    last_redrive_at: timeOrNull(letter?.lastRedriveAt),
    next_redrive_at: timeOrNull(letter?.nextRedriveAt),
    discard_reason: letter?.discardReason ?? '',
    kind: item.kind,
    encoding: item.encoding,
    reference: item.reference,
    key: textOf(item.key),
    key_base64: base64Of(item.key),
  }
}

/** `slug`: the one that it is counted under. */
export function viewSummary(item: ListedLetter, slug: string): LetterSummary {
  const failure = item.failure === null ? null : viewShort(item.failure, slug)
  return {
    ...viewFields(item),
    failure:
      failure === null
        ? null
        : { ...failure, message: failure.message.slice(0, messageShown).toWellFormed() },
    payload: previewPayload(item.payload, item.payloadBytes),
  }
}

function viewOrigin(origin: Origin): Static<typeof OriginView> {
  const { createdAt, ...rest } = origin
  return { ...rest, created_at: formatInstant(createdAt) }
}

function viewShort(failure: Failure, slug: string): Static<typeof ShortFailureView> {
  return {
    reason: failure.reason,
    slug,
    error_class: failure.errorClass,
    message: failure.message,
    attempts: failure.attempts,
    first_failed_at: formatInstant(failure.firstFailedAt),
    last_failed_at: formatInstant(failure.lastFailedAt),
    worker: failure.worker,
  }
}

function viewFailure(failure: Failure, slug: string): Static<typeof FailureView> {
  return { ...viewShort(failure, slug), stack: failure.stack }
}

/** Newest first: the present one, which the letter is counted under, and those before it. */
export function viewFailures(item: Item, slug: string): Static<typeof FailureView>[] {
  const { failure, history } = item
  return [
    ...(failure === null ? [] : [viewFailure(failure, slug)]),
    ...history.map((before) => viewFailure(before, toReasonSlug(before.message))),
  ]
}

export function viewRedrive(
  record: RedriveRecord,
  campaignName: (id: string) => string = () => '',
): Static<typeof RedriveView> {
  const { campaign, target } = record
  return {
    number: record.number,
    at: formatInstant(record.at),
    actor: record.actor,
    campaign: campaign === null ? null : { ...campaign, name: campaignName(campaign.id) },
    target: { ...target },
    edit: record.edit,
    outcome: record.outcome,
    ended_at: timeOrNull(record.endedAt),
  }
}

export function viewHeaders(item: Pick<Item, 'headers'>): Static<typeof HeaderView>[] {
  return item.headers.map(viewHeader)
}

export function timeOrNull(instant: Instant | null | undefined): string | null {
  return instant === null || instant === undefined ? null : formatInstant(instant)
}

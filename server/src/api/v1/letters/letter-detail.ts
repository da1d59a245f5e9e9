/** A complete letter in answers, live or archived. */
import type { FastifyReply } from 'fastify'
import { type Static, Type } from 'typebox'
import { redrivesKept } from '../../../core/dead-letters/letter.ts'
import { historyMax } from '../../../core/items/item.ts'
import { KnownError } from '../../../errors.ts'
import type { LetterDetail, Letters } from '../../../letters/letters.ts'
import type { ApiContext } from '../../context.ts'
import { component } from '../../http/openapi/annotations.ts'
import { largeBytesMin, sendParts, writeJsonParts } from '../../http/wire/json-parts.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { AuditView, viewAudit } from '../audit/audit-view.ts'
import {
  HeaderView,
  KeyView,
  type PayloadForm,
  PayloadView,
  payloadForms,
  viewKey,
  viewLargePayload,
  viewPayload,
} from '../values/content-view.ts'
import { formatTimeOrNull, nullableTime, time } from '../values/schemas.ts'
import {
  FailureView,
  letterFields,
  RedriveView,
  viewFailures,
  viewFields,
  viewHeaders,
  viewRedrives,
} from './letter-view.ts'

const Headers = Type.Array(HeaderView, { description: 'The headers of the message, in order.' })

const EditView = component(
  'LetterEdit',
  Type.Object({
    number: Type.Integer({ description: 'Number of the version, starting at 1.' }),
    at: time('When the version was created.'),
    actor: Type.String({ description: 'The person or program that created it.' }),
    payload: PayloadView,
    key: KeyView,
    headers: Headers,
  }),
)

export const LetterView = component(
  'Letter',
  Type.Object({
    ...letterFields,
    archived_at: nullableTime('When it was archived; null if it is live.'),
    payload: PayloadView,
    headers: Headers,
    failures: Type.Array(FailureView, {
      description: `The last ${historyMax + 1} failures, newest first. The first is the current one.`,
    }),
    redrives: Type.Array(RedriveView, {
      description: `The last ${redrivesKept} redrives, newest first. requeue_count counts all of them.`,
    }),
    edits: Type.Array(EditView, {
      description:
        'Edited versions that were sent, oldest first. The letter keeps its original payload. Only the newest versions ' +
        'have payloads, together about 16 MiB.',
    }),
    audit: Type.Array(AuditView, { description: 'The audit rows of the letter, newest first.' }),
  }),
)

/** The query of a single letter. */
export const LetterQuery = Type.Object(
  {
    payload_form: Type.Enum([...payloadForms], {
      default: 'text',
      description:
        'The form of the payload. A payload that is not JSON is shown as text, and a payload that is not UTF-8 in ' +
        'base64. none: only its length.',
    }),
  },
  { additionalProperties: false },
)

export function createLetterNotFoundError(id: string): KnownError {
  return new KnownError('LETTER_NOT_FOUND', `letter ${JSON.stringify(id)} does not exist`)
}

/** Answers with a letter. A letter with a large payload is sent in parts. */
export async function answerLetter(
  detail: LetterDetail,
  form: PayloadForm,
  reply: FastifyReply,
  context: Pick<ApiContext, 'letters' | 'bodyThread'>,
): Promise<Static<typeof LetterView> | FastifyReply> {
  const letters = context.letters()
  const bytes = [detail.item, ...detail.edits].reduce((sum, { payload }) => sum + payload.byteLength, 0)
  if (bytes < largeBytesMin) return viewLetter(detail, letters, (payload) => viewPayload(payload, form))
  const view = await viewLetter(detail, letters, (payload) =>
    viewLargePayload(payload, form, context.bodyThread.isJson),
  )
  return sendParts(reply, 'application/json; charset=utf-8', writeJsonParts(view))
}

async function viewLetter<Payload>(
  { item, archivedAt, edits, audit }: LetterDetail,
  letters: Letters,
  view: (payload: Uint8Array) => Payload,
) {
  const campaignNames = new Map<string, string>()
  const [labelOf] = await Promise.all([
    letters.labels([item]),
    addCampaignNames(campaignNames, [item], letters.campaigns),
  ])
  const { slug, groupId } = labelOf(item)
  const payloads = await Promise.all([item, ...edits].map(({ payload }) => view(payload)))
  return {
    ...viewFields(item, groupId),
    archived_at: formatTimeOrNull(archivedAt),
    payload: payloads[0] as Awaited<Payload>,
    headers: viewHeaders(item),
    failures: viewFailures(item, slug),
    redrives: viewRedrives(item, campaignNames),
    edits: edits.map((edit, index) => ({
      number: edit.number,
      at: formatInstant(edit.at),
      actor: edit.actor,
      payload:
        edit.payloadBytes === undefined
          ? (payloads[index + 1] as Awaited<Payload>)
          : { bytes: edit.payloadBytes, is_truncated: true },
      key: viewKey(edit.key),
      headers: viewHeaders(edit),
    })),
    audit: audit.map(viewAudit),
  }
}

/**
 * Adds the names of the campaigns that redrove these letters. A campaign that no longer exists has no name.
 */
export async function addCampaignNames(
  names: Map<string, string>,
  items: readonly LetterDetail['item'][],
  campaigns: Pick<Letters['campaigns'], 'get'>,
): Promise<void> {
  const redrives = items.flatMap(({ letter }) => letter?.redrives ?? [])
  const ids = new Set(redrives.flatMap(({ campaign }) => campaign?.id ?? []))
  for (const id of ids) {
    if (!names.has(id)) names.set(id, (await campaigns.get(id))?.spec.name ?? '')
  }
}

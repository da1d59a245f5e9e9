/** Finding dead letters, and looking at one. */
import { type Static, Type } from 'typebox'
import { historyMax } from '../../../core/item.ts'
import { redrivesKept } from '../../../core/letter.ts'
import { KnownError } from '../../../errors.ts'
import type { LetterDetail, Letters } from '../../../letters/letters.ts'
import type { LetterCursor, LetterOrder } from '../../../storage/contract/letters.ts'
import { route } from '../../http/route.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { AuditView, viewAudit } from '../audit/audit-view.ts'
import { v1 } from '../dialect.ts'
import { filterFields, readFilter } from '../filter/letter-filter.ts'
import { NextCursor, nullable, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { base64Of, HeaderView, textOf } from '../values/wire-bytes.ts'
import {
  FailureView,
  LetterSummary,
  letterFields,
  RedriveView,
  Time,
  viewFailures,
  viewFields,
  viewHeaders,
  viewRedrive,
  viewSummary,
} from './letter-view.ts'
import { type PayloadForm, PayloadView, payloadForms, viewPayload } from './payload-view.ts'

export const letterOrders = { died_at: 'diedAt', updated_at: 'updatedAt' } as const satisfies Record<
  string,
  LetterOrder
>
export const orderFields = {
  order_by: Type.Enum(['died_at', 'updated_at'], { default: 'died_at' }),
  order: Type.Enum(['desc', 'asc'], { default: 'desc' }),
}
const searchMsMax = 1_000

export const LetterId = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'As it was given out, or the UUID under which the letter is known elsewhere.',
})

const EditView = Type.Object({
  number: Type.Integer(),
  at: Time,
  actor: Type.String(),
  payload: PayloadView,
  key: nullable(Type.String()),
  key_base64: nullable(Type.String()),
  headers: Type.Array(HeaderView),
})

export const LetterView = Type.Object({
  ...letterFields,
  archived_at: nullable(Time, 'Null while it is live.'),
  payload: PayloadView,
  headers: Type.Array(HeaderView),
  failures: Type.Array(FailureView, {
    description: `Newest first, the last ${historyMax + 1}; the first one is why it is dead.`,
  }),
  redrives: Type.Array(RedriveView, {
    description: `Newest first, the last ${redrivesKept}; requeue_count says how many there were.`,
  }),
  edits: Type.Array(EditView, {
    description: 'Versions that somebody made of it, oldest first. The letter itself stays as it came.',
  }),
  audit: Type.Array(AuditView, { description: 'What was done to it, newest first.' }),
})

export const letterRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/letters',
    permission: 'letter.read',
    summary: 'Dead letters that match, page by page.',
    tag: 'letters',
    dialect: v1,
    slowMs: 2 * searchMsMax,
    schema: {
      querystring: pageQuery({ ...filterFields, ...orderFields }, { default: 50, max: 500 }),
      response: {
        200: Type.Object({
          letters: Type.Array(LetterSummary),
          next_cursor: NextCursor,
          looked: Type.Integer({ description: 'How many letters were looked at to find these.' }),
          is_complete: Type.Boolean({
            description: 'False: the search took too long to fill the page. Go on with next_cursor.',
          }),
          total: nullable(
            Type.Integer(),
            'How many match in all; null when only a search could tell, or error classes are too many to be told apart.',
          ),
        }),
      },
    },
    handler: async ({ query }, _reply, context) => {
      const { cursor, limit, order_by, order, ...fields } = query
      const filter = await readFilter(fields, 'query', context.storage)
      const list = `letters:${order_by}:${order}`
      const after = cursor === undefined ? undefined : readLetterCursor(cursor, list)
      const letters = context.letters()
      const page = await letters.list({
        filter,
        order: letterOrders[order_by],
        isDescending: order === 'desc',
        ...(after !== undefined && { after }),
        countMax: limit,
        bytes: 'head',
        msMax: searchMsMax,
      })
      const slugOf = await letters.slugs(page.letters)
      const { next } = page
      return {
        letters: page.letters.map((letter) => viewSummary(letter, slugOf(letter))),
        next_cursor: next === null ? null : writeLetterCursor(next, list),
        looked: page.looked,
        is_complete: next === null || page.letters.length >= limit,
        total: page.total,
      }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/letters/{id}',
    permission: 'letter.read',
    summary: 'One dead letter, live or archived: what it is, why it failed, and what was done to it.',
    tag: 'letters',
    dialect: v1,
    schema: {
      params: Type.Object({ id: LetterId }),
      querystring: Type.Object(
        {
          payload: Type.Enum([...payloadForms], {
            default: 'auto',
            description: 'auto: as JSON where it is JSON, else as text, else as hex.',
          }),
        },
        { additionalProperties: false },
      ),
      response: { 200: LetterView },
    },
    handler: async ({ params: { id }, query: { payload } }, _reply, context) => {
      const letters = context.letters()
      const detail = await letters.find(id)
      if (detail === null) throw letterNotFound(id)
      return viewLetter(detail, payload, await namesOf(detail, letters))
    },
  }),
]

export function readLetterCursor(cursor: string, list: string): LetterCursor {
  const [value, id] = readCursor(cursor, list, ['number', 'string'])
  return { value, id }
}

export function writeLetterCursor({ value, id }: LetterCursor, list: string): string {
  return writeCursor(list, [value, id])
}

export function letterNotFound(id: string): KnownError {
  return new KnownError('LETTER_NOT_FOUND', `there is no letter ${JSON.stringify(id)}`)
}

/** What is shown of a letter besides itself. */
type Names = Readonly<{ slug: string; campaigns: ReadonlyMap<string, string> }>

export async function namesOf({ item }: Pick<LetterDetail, 'item'>, letters: Letters): Promise<Names> {
  const [slugOf, campaigns] = await Promise.all([letters.slugs([item]), campaignNames(item, letters)])
  return { slug: slugOf(item), campaigns }
}

async function campaignNames(
  item: LetterDetail['item'],
  letters: Pick<Letters, 'campaigns'>,
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>()
  await learnCampaigns([item], letters.campaigns, names)
  return names
}

/** The names of the campaigns that sent these letters; one that is gone has none. */
export async function learnCampaigns(
  items: readonly LetterDetail['item'][],
  campaigns: Pick<Letters['campaigns'], 'get'>,
  names: Map<string, string>,
): Promise<void> {
  const missing = new Set<string>()
  for (const { letter } of items) {
    for (const { campaign } of letter?.redrives ?? []) {
      if (campaign !== null && !names.has(campaign.id)) missing.add(campaign.id)
    }
  }
  for (const id of missing) names.set(id, (await campaigns.get(id))?.spec.name ?? '')
}

export function viewLetter(
  detail: LetterDetail,
  form: PayloadForm,
  { slug, campaigns }: Names,
): Static<typeof LetterView> {
  const { item, archivedAt, edits, audit } = detail
  return {
    ...viewFields(item),
    archived_at: archivedAt === null ? null : formatInstant(archivedAt),
    payload: viewPayload(item.payload, form),
    headers: viewHeaders(item),
    failures: viewFailures(item, slug),
    redrives: (item.letter?.redrives ?? []).map((record) =>
      viewRedrive(record, (id) => campaigns.get(id) ?? ''),
    ),
    edits: edits.map((edit) => ({
      number: edit.number,
      at: formatInstant(edit.at),
      actor: edit.actor,
      payload: viewPayload(edit.payload, form),
      key: textOf(edit.key),
      key_base64: base64Of(edit.key),
      headers: viewHeaders(edit),
    })),
    audit: audit.map(viewAudit),
  }
}

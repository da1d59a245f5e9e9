import { type Static, Type } from 'typebox'
import { type Instant, usPerSecond } from '../../../core/instant.ts'
import type { Item } from '../../../core/item.ts'
import type { Letters } from '../../../letters/letters.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { dlqManagement, prefix } from '../dialects.ts'
import { type NumberedPage, type NumberedQuery, readNumberedPage } from '../numbered-pages.ts'
import { type IsoTime, parseIsoTime } from './iso-time.ts'
import { logEvent } from './log-event.ts'
import { openStates } from './open-letters.ts'
import { Success, createSuccess } from './success.ts'

const Entry = Type.Object({
  id: Type.String(),
  entity: Type.String({ description: "The item's kind, or `item`." }),
  reason: Type.String({ description: 'One word for the message, as `purge` and `stats` know it.' }),
  message: Type.Union([Type.String(), Type.Null()]),
  created_at: Type.String({ description: 'When it became a dead letter.' }),
  updated_at: Type.String(),
  retry_count: Type.Integer({ description: 'Redrives that came back.' }),
})

const Time = Type.Optional(
  Type.String({ maxLength: 64, description: 'ISO 8601, included; UTC unless it says otherwise.' }),
)

const Query = Type.Object(
  {
    page: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, default: 1 }),
    page_size: Type.Optional(Type.Integer({ minimum: 1, description: 'Up to `dlq.page_size_max`.' })),
    reason: Type.Optional(
      Type.String({ maxLength: 1_000, description: 'Somewhere in the message, whatever the case.' }),
    ),
    from: Time,
    to: Time,
    order_by: Type.Enum(['created_at', 'updated_at'], { default: 'created_at' }),
    order_dir: Type.Enum(['desc', 'asc'], { default: 'desc' }),
    topic: Type.Optional(Type.String({ description: 'Only those that came from there.' })),
  },
  { additionalProperties: false },
)

export const listRoute = route({
  method: 'GET',
  path: prefix,
  permission: 'letter.read',
  summary: 'The dead letters that wait for somebody (PENDING and DEAD), page by page.',
  tag: 'dlq',
  dialect: dlqManagement,
  slowMs: 5_000,
  schema: {
    querystring: Query,
    response: {
      200: Success(
        Type.Object({
          items: Type.Array(Entry),
          page: Type.Integer(),
          page_size: Type.Integer(),
          total: Type.Integer(),
          total_is_exact: Type.Optional(
            Type.Boolean({
              description: 'Only as false: not everything could be looked at, `total` was found.',
            }),
          ),
        }),
      ),
    },
  },
  handler: async (request, _reply, context) => {
    const startedMs = performance.now()
    const { query } = request
    const { page, page_size = context.dlqLimits.pageSizeDefault, reason, from, to } = query
    checkPageSize(page_size, context.dlqLimits.pageSizeMax)
    const times = {
      ...(from !== undefined && { from: parseIsoTime('query.from', from) }),
      ...(to !== undefined && { to: parseIsoTime('query.to', to) }),
    }
    const letters = context.letters()
    const numbered = createNumberedQuery(query, times, page_size)
    const total = await readKnownTotal(letters, numbered, context.clock.now())
    const found = numbered === null ? emptyPage : await readNumberedPage(letters, { ...numbered, ...total })
    const slugOf = await letters.slugs(found.letters)
    const asked = { page, page_size, reason: reason ?? null, from: from ?? null, to: to ?? null }
    logEvent('dlq.list', startedMs, asked, request, context)
    return createSuccess({
      items: found.letters.map((item) => viewEntry(item, slugOf(item))),
      page,
      page_size,
      total: found.total,
      ...(!found.isExact && { total_is_exact: false }),
    })
  },
})

const emptyPage: NumberedPage = { letters: [], total: 0, isExact: true, hasNext: false }

function checkPageSize(pageSize: number, max: number): void {
  if (pageSize <= max) return
  throw new InvalidRequest([{ field: 'query.page_size', message: `must be <= ${max}` }])
}

/** Null: nothing can match. */
function createNumberedQuery(
  { page, reason = '', order_by, order_dir, topic }: Static<typeof Query>,
  { from, to }: Readonly<{ from?: IsoTime; to?: IsoTime }>,
  pageSize: number,
): NumberedQuery | null {
  const [first, last] = [from?.first, to?.last]
  if (first !== undefined && last !== undefined && first > last) return null
  const text = reason.trim()
  const died = { ...(first !== undefined && { from: first }), ...(last !== undefined && { until: last }) }
  return {
    filter: {
      states: openStates,
      ...(Object.keys(died).length > 0 && { died }),
      ...(text !== '' && { text }),
      ...(topic !== undefined && { origins: [topic] }),
    },
    order: order_by === 'created_at' ? 'diedAt' : 'updatedAt',
    isDescending: order_dir === 'desc',
    page,
    pageSize,
  }
}

const dayUs = 24 * 3_600 * usPerSecond

/** What died since some time of the last day is counted, and need not be searched for. */
async function readKnownTotal(
  letters: Letters,
  query: NumberedQuery | null,
  now: Instant,
): Promise<{ total?: number }> {
  if (query === null) return {}
  const { states, died, ...others } = query.filter
  if (died?.from === undefined || died.until !== undefined || Object.keys(others).length > 0) return {}
  return died.from < now - dayUs ? {} : { total: await letters.countOpenSince(died.from) }
}

function viewEntry(item: Item, reason: string): Static<typeof Entry> {
  const message = item.failure?.message ?? ''
  return {
    id: item.rootId,
    entity: item.kind === '' ? 'item' : item.kind,
    reason,
    message: message === '' ? null : message,
    created_at: formatInstant(item.diedAt ?? item.createdAt),
    updated_at: formatInstant(item.updatedAt),
    retry_count: item.redrives,
  }
}

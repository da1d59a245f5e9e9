import { type Static, Type } from 'typebox'
import type { Item } from '../../../core/items/item.ts'
import { type Instant, usPerSecond } from '../../../core/time/instant.ts'
import type { Letters } from '../../../letters/letters.ts'
import type { ListedState } from '../../../storage/contract/items.ts'
import { component, describedWith } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { dlqManagement, prefix } from '../dialects.ts'
import { type NumberedPage, type NumberedQuery, readNumberedPage } from '../numbered-pages.ts'
import { createSuccess, logEvent, Success } from './answer.ts'
import { type IsoTime, parseIsoTime } from './iso-time.ts'

/** The states of open letters (PENDING and DEAD), which wait for an operator. */
export const openStates: readonly ListedState[] = ['waiting', 'scheduled', 'dead']

const Entry = component(
  'DlqEntry',
  Type.Object({
    id: Type.String({ description: 'Id of the letter.' }),
    entity: Type.String({ description: 'The kind of the item, or `item` if it has none.' }),
    reason: Type.String({
      description: 'The message reduced to one word. `purge` and `stats` use the same word.',
    }),
    message: Type.Union([Type.String(), Type.Null()], {
      description: 'The error message; null if there is none.',
    }),
    created_at: describedWith(
      { format: 'date-time' },
      Type.String({ description: 'When the item became a dead letter.' }),
    ),
    updated_at: describedWith(
      { format: 'date-time' },
      Type.String({ description: 'When the letter last changed.' }),
    ),
    retry_count: Type.Integer({
      description: 'Number of attempts before the last death, plus the number of redrives that failed.',
    }),
  }),
)

const time = (bound: string) =>
  Type.Optional(
    Type.String({
      maxLength: 64,
      description: `Only letters that died at or ${bound} this ISO 8601 time. Without an offset it is UTC.`,
    }),
  )

const Query = Type.Object(
  {
    page: Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      default: 1,
      description: 'Number of the page, starting at 1.',
    }),
    page_size: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Letters per page, at most `dlq.page_size_max`.' }),
    ),
    reason: Type.Optional(
      Type.String({
        maxLength: 1_000,
        description: 'Only letters whose message contains this text, in any case.',
      }),
    ),
    from: time('after'),
    to: time('before'),
    order_by: Type.Enum(['created_at', 'updated_at'], {
      default: 'created_at',
      description: 'The time to sort by.',
    }),
    order_dir: Type.Enum(['desc', 'asc'], { default: 'desc', description: 'desc: newest first.' }),
    topic: Type.Optional(Type.String({ description: 'Only letters that came from this topic or queue.' })),
  },
  { additionalProperties: false },
)

export const listRoute = route({
  method: 'GET',
  path: prefix,
  operationId: 'dlqList',
  errors: ['PAGE_TOO_DEEP'],
  permission: 'letter.read',
  summary: 'Lists the open dead letters (PENDING and DEAD) in numbered pages.',
  tag: 'dlq',
  dialect: dlqManagement,
  slowMs: 5_000,
  schema: {
    querystring: Query,
    response: {
      200: Success(
        Type.Object({
          items: Type.Array(Entry, { description: 'The letters of this page.' }),
          page: Type.Integer({ description: 'Number of this page.' }),
          page_size: Type.Integer({ description: 'Letters per page.' }),
          total: Type.Integer({ description: 'Number of letters that match.' }),
          total_is_exact: Type.Optional(
            Type.Boolean({
              description:
                'Present only as false: the search was stopped, and `total` counts the letters found so far.',
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
    const labelOf = await letters.labels(found.letters)
    const asked = { page, page_size, reason: reason ?? null, from: from ?? null, to: to ?? null }
    logEvent('dlq.list', startedMs, asked, request, context)
    return createSuccess({
      items: found.letters.map((item) => viewEntry(item, labelOf(item).slug)),
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

/** Returns null if no letter can match. */
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
    order: order_by === 'created_at' ? 'deadLetteredAt' : 'updatedAt',
    isDescending: order_dir === 'desc',
    page,
    pageSize,
  }
}

const dayUs = 24 * 3_600 * usPerSecond

/** Reads the total from the counts if the only condition is a start within the last day. */
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
    created_at: formatInstant(item.deadLetteredAt ?? item.createdAt),
    updated_at: formatInstant(item.updatedAt),
    retry_count: (item.failure?.attempts ?? 0) + item.retryCount,
  }
}

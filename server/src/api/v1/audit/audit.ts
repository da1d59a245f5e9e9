import { type Static, Type } from 'typebox'
import type { Instant } from '../../../core/instant.ts'
import type { AuditQuery, AuditRow } from '../../../storage/contract/audit.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'
import { route } from '../../http/route.ts'
import { type FieldFault, InvalidRequest } from '../../http/validation/invalid-request.ts'
import { parseInstant } from '../../http/wire/wire-time.ts'
import { v1 } from '../dialect.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { AuditView, viewAudit } from './audit-view.ts'

const list = 'audit'
const timesList = 'audit-times'
const condition = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 1_000, description }))

const timeBound = (description: string) =>
  Type.Optional(Type.String({ maxLength: 64, description, examples: ['2026-01-02T03:04:05Z'] }))

const Query = pageQuery(
  {
    target: condition('Only changes of this letter, queue or campaign.'),
    action: condition('Only this kind of change, such as letter.redrive.'),
    actor: condition('Only changes by this actor.'),
    after: timeBound('Only changes at or after this RFC 3339 time.'),
    before: timeBound('Only changes before this RFC 3339 time.'),
  },
  { default: 50, max: 500 },
)

/** The store searches by target and action. Actors are compared here, in at most `rowsExaminedMax` rows. */
const rowsPerRead = 500
const rowsExaminedMax = 10_000

export const auditRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/audit',
    operationId: 'listAudit',
    permission: 'audit.read',
    summary: 'Lists audit rows, newest first.',
    tag: 'audit',
    dialect: v1,
    schema: {
      querystring: Query,
      response: {
        200: Type.Object({
          entries: Type.Array(AuditView, { description: 'The rows of this page.' }),
          next_cursor: NextCursor,
          is_complete: Type.Boolean({
            description: 'False if the search stopped before the page was full. Continue with next_cursor.',
          }),
        }),
      },
    },
    handler: async ({ query }, _reply, context) => {
      const times = readTimes(query)
      const { rows, last, hasMore } = await findRows(context.storage(), query, times)
      return {
        entries: rows.map(viewAudit),
        next_cursor: hasMore && last !== undefined ? writePosition(last, times) : null,
        is_complete: !hasMore || rows.length === query.limit,
      }
    },
  }),
]

type Times = NonNullable<AuditQuery['times']>
type Position = Readonly<{ at: Instant; id: number }>

/** Undefined if the list is not limited to times. */
function readTimes({ after, before }: Static<typeof Query>): Times | undefined {
  if (after === undefined && before === undefined) return undefined
  const faults: FieldFault[] = []
  const read = (field: 'after' | 'before', text: string | undefined): Instant | undefined => {
    const time = text === undefined ? undefined : parseInstant(text)
    if (text !== undefined && time === undefined)
      faults.push({ field: `query.${field}`, message: 'must be an RFC 3339 time' })
    return time
  }
  const [from, until] = [read('after', after), read('before', before)]
  if (from !== undefined && until !== undefined && from >= until)
    faults.push({ field: 'query.after', message: 'is not earlier than before: no row can match' })
  if (faults.length > 0) throw new InvalidRequest(faults)
  return { ...(from !== undefined && { after: from }), ...(until !== undefined && { before: until }) }
}

/** A list that is limited to times is ordered by time. Other lists are ordered by id. */
function writePosition({ at, id }: Position, times: Times | undefined): string {
  return times === undefined ? writeCursor(list, [id]) : writeCursor(timesList, [at, id])
}

function readPosition(
  cursor: string | undefined,
  times: Times | undefined,
): Pick<AuditQuery, 'beforeId' | 'times'> {
  if (times === undefined) {
    const [beforeId] = cursor === undefined ? [] : readCursor(cursor, list, ['number'])
    return beforeId === undefined ? {} : { beforeId }
  }
  if (cursor === undefined) return { times }
  const [at, id] = readCursor(cursor, timesList, ['number', 'number'])
  return { times: { ...times, position: { at, id } } }
}

function moveBehind({ at, id }: Position, times: Times | undefined): Pick<AuditQuery, 'beforeId' | 'times'> {
  return times === undefined ? { beforeId: id } : { times: { ...times, position: { at, id } } }
}

/** `last` is the last examined row, which need not match. */
type FoundRows = Readonly<{ rows: readonly AuditRow[]; last: Position | undefined; hasMore: boolean }>

async function findRows(
  storage: Pick<StoreReads, 'listAudit'>,
  { cursor, limit, target, action, actor }: Static<typeof Query>,
  times: Times | undefined,
): Promise<FoundRows> {
  const rows: AuditRow[] = []
  const countMax = actor === undefined ? limit : rowsPerRead
  const conditions = { ...(target !== undefined && { target }), ...(action !== undefined && { action }) }
  let from = readPosition(cursor, times)
  let last: Position | undefined
  for (let examined = 0; examined < rowsExaminedMax && rows.length < limit; examined += countMax) {
    const read = await storage.listAudit({ ...from, ...conditions, countMax })
    last = addMatching(rows, read, actor, limit) ?? last
    if (read.length === 0) return { rows, last, hasMore: false }
    if (read.length < countMax && read.at(-1)?.id === last?.id) return { rows, last, hasMore: false }
    if (last !== undefined) from = moveBehind(last, times)
  }
  return { rows, last, hasMore: true }
}

/** Adds the rows of an actor until there are `limit` rows. Returns the last examined row. */
function addMatching(
  rows: AuditRow[],
  read: readonly AuditRow[],
  actor: string | undefined,
  limit: number,
): AuditRow | undefined {
  let last: AuditRow | undefined
  for (const row of read) {
    if (rows.length === limit) break
    last = row
    if (actor === undefined || row.actor === actor) rows.push(row)
  }
  return last
}

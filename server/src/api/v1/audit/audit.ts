import { type Static, Type } from 'typebox'
import type { AuditRow } from '../../../storage/contract/audit.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { AuditView, viewAudit } from './audit-view.ts'

const list = 'audit'
const condition = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 1_000, description }))

const Query = pageQuery(
  {
    target: condition('Only changes of this letter, queue or campaign.'),
    action: condition('Only this kind of change, such as letter.redrive.'),
    actor: condition('Only changes by this actor.'),
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
      const { rows, lastId, hasMore } = await findRows(context.storage(), query)
      return {
        entries: rows.map(viewAudit),
        next_cursor: hasMore && lastId !== undefined ? writeCursor(list, [lastId]) : null,
        is_complete: !hasMore || rows.length === query.limit,
      }
    },
  }),
]

/** `lastId` is the last examined row, which need not match. */
type FoundRows = Readonly<{ rows: readonly AuditRow[]; lastId: number | undefined; hasMore: boolean }>

async function findRows(
  storage: Pick<StoreReads, 'listAudit'>,
  { cursor, limit, target, action, actor }: Static<typeof Query>,
): Promise<FoundRows> {
  const rows: AuditRow[] = []
  const countMax = actor === undefined ? limit : rowsPerRead
  const conditions = { ...(target !== undefined && { target }), ...(action !== undefined && { action }) }
  let [lastId] = cursor === undefined ? [] : readCursor(cursor, list, ['number'])
  for (let examined = 0; examined < rowsExaminedMax && rows.length < limit; examined += countMax) {
    const before = lastId === undefined ? {} : { beforeId: lastId }
    const read = await storage.listAudit({ ...before, ...conditions, countMax })
    lastId = addMatching(rows, read, actor, limit) ?? lastId
    if (read.length === 0) return { rows, lastId, hasMore: false }
    if (read.length < countMax && read.at(-1)?.id === lastId) return { rows, lastId, hasMore: false }
  }
  return { rows, lastId, hasMore: true }
}

/** Adds the rows of an actor until there are `limit` rows. Returns the id of the last examined row. */
function addMatching(
  rows: AuditRow[],
  read: readonly AuditRow[],
  actor: string | undefined,
  limit: number,
): number | undefined {
  let lastId: number | undefined
  for (const row of read) {
    if (rows.length === limit) break
    lastId = row.id
    if (actor === undefined || row.actor === actor) rows.push(row)
  }
  return lastId
}

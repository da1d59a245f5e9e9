import { Type } from 'typebox'
import type { AuditRow } from '../../../storage/contract/audit.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { AuditView, viewAudit } from './audit-view.ts'

const list = 'audit'
const name = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 1_000, description }))

/** The store finds by target and action; who did it is looked for, in so many rows at most. */
const rowsRead = 500
const rowsLookedMax = 10_000

export const auditRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/audit',
    permission: 'audit.read',
    summary: 'Who did what to which, when and why; newest first.',
    tag: 'audit',
    dialect: v1,
    schema: {
      querystring: pageQuery(
        {
          target: name('Done to this letter, queue or campaign.'),
          action: name('Such as letter.redrive.'),
          actor: name('Done by this one.'),
        },
        { default: 50, max: 500 },
      ),
      response: {
        200: Type.Object({
          entries: Type.Array(AuditView),
          next_cursor: NextCursor,
          is_complete: Type.Boolean({ description: 'False: searched long enough. Go on with next_cursor.' }),
        }),
      },
    },
    handler: async ({ query: { cursor, limit, target, action, actor } }, _reply, context) => {
      const storage = context.storage()
      const found: AuditRow[] = []
      let [beforeId] = cursor === undefined ? [] : readCursor(cursor, list, ['number'])
      let isMore = true
      for (let looked = 0; isMore && found.length < limit && looked < rowsLookedMax; ) {
        const countMax = actor === undefined ? limit : rowsRead
        const rows = await storage.listAudit({
          ...(beforeId !== undefined && { beforeId }),
          ...(target !== undefined && { target }),
          ...(action !== undefined && { action }),
          countMax,
        })
        for (const row of rows) {
          if (found.length === limit) break
          beforeId = row.id
          if (actor === undefined || row.actor === actor) found.push(row)
        }
        looked += rows.length
        isMore = rows.length === countMax || rows.at(-1)?.id !== beforeId
        if (rows.length === 0) isMore = false
      }
      return {
        entries: found.map(viewAudit),
        next_cursor: isMore && beforeId !== undefined ? writeCursor(list, [beforeId]) : null,
        is_complete: !isMore || found.length === limit,
      }
    },
  }),
]

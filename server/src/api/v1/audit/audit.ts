import type { FastifyReply } from 'fastify'
import { type Static, Type } from 'typebox'
import type { Instant } from '../../../core/time/instant.ts'
import type { AuditQuery, AuditRow } from '../../../storage/contract/audit.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'
import type { ApiContext } from '../../context.ts'
import { abortOnDisconnect } from '../../http/connections/client-disconnect.ts'
import { route } from '../../http/route.ts'
import { type FieldFault, InvalidRequest } from '../../http/validation/invalid-request.ts'
import { type Part, takeTurns, toStream } from '../../http/wire/json-parts.ts'
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

const conditions = {
  target: condition('Only changes of this letter, queue or campaign.'),
  action: condition('Only this kind of change, such as letter.redrive.'),
  actor: condition('Only changes by this actor.'),
  namespace: condition('Only changes of objects in this namespace.'),
  request_id: condition('Only changes of this request.'),
  after: timeBound('Only changes at or after this RFC 3339 time.'),
  before: timeBound('Only changes before this RFC 3339 time.'),
}
const Query = pageQuery(conditions, { default: 50, max: 500 })
const ExportQuery = Type.Object(conditions, { additionalProperties: false })

const rowsPerRead = 500

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
          is_complete: Type.Boolean({ description: 'Always true: a page ends only when it is full.' }),
        }),
      },
    },
    handler: async ({ query }, _reply, context) => {
      const times = readTimes(query)
      const found = readConditions(query)
      const { limit: countMax } = query
      // One more row than the page shows whether there is another page.
      const read = await context
        .storage()
        .listAudit({ ...readPosition(query.cursor, times), ...found, countMax: countMax + 1 })
      const rows = read.slice(0, countMax)
      const last = rows.at(-1)
      return {
        entries: rows.map(viewAudit),
        next_cursor: read.length > countMax && last !== undefined ? writePosition(last, times) : null,
        is_complete: true,
      }
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/audit/export',
    operationId: 'exportAudit',
    permission: 'audit.read',
    summary:
      'Exports all audit rows that match, newest first, as one JSON object per line. The last line reports whether ' +
      'the export is complete.',
    tag: 'audit',
    dialect: v1,
    slowMs: Number.POSITIVE_INFINITY,
    answerKind: 'export',
    schema: {
      querystring: ExportQuery,
      response: {
        200: {
          description:
            'An audit row per line, with the fields of the list. The last line is {"end": {"is_complete", "entries"}}. ' +
            'Without it the answer was cut off.',
          content: { 'application/x-ndjson': { schema: Type.String() } },
        },
      },
    },
    handler: async ({ query, id: requestId }, reply, context) => {
      const pages = readAll(context.storage(), readTimes(query), readConditions(query))
      // Read before the answer begins, so that a failure is still an error with its status.
      const first = await pages.next()
      const lines = writeLines(pages, first.done ? [] : first.value, endSignal(reply, context), (error) =>
        context.log.error({ request_id: requestId, err: error }, 'an export failed after it had begun'),
      )
      return reply
        .header('content-type', 'application/x-ndjson; charset=utf-8')
        .header('content-disposition', 'attachment; filename="audit.ndjson"')
        .send(toStream(lines))
    },
  }),
]

type Times = NonNullable<AuditQuery['times']>
type Position = Readonly<{ at: Instant; id: number }>
type Conditions = Pick<AuditQuery, 'target' | 'action' | 'actor' | 'namespaces' | 'requestId'>

function readConditions(query: Static<typeof ExportQuery>): Conditions {
  const { target, action, actor, namespace, request_id: requestId } = query
  return {
    ...(target !== undefined && { target }),
    ...(action !== undefined && { action }),
    ...(actor !== undefined && { actor }),
    ...(namespace !== undefined && { namespaces: [namespace] }),
    ...(requestId !== undefined && { requestId }),
  }
}

/** Undefined if the list is not limited to times. */
function readTimes({ after, before }: Static<typeof ExportQuery>): Times | undefined {
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
  return moveBehind({ at, id }, times)
}

function moveBehind({ at, id }: Position, times: Times | undefined): Pick<AuditQuery, 'beforeId' | 'times'> {
  return times === undefined ? { beforeId: id } : { times: { ...times, position: { at, id } } }
}

async function* readAll(
  storage: Pick<StoreReads, 'listAudit'>,
  times: Times | undefined,
  found: Conditions,
): AsyncGenerator<readonly AuditRow[]> {
  for (let from = readPosition(undefined, times); ; ) {
    const rows = await storage.listAudit({ ...from, ...found, countMax: rowsPerRead })
    yield rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < rowsPerRead) return
    from = moveBehind(last, times)
  }
}

function endSignal(reply: FastifyReply, { stopping }: Pick<ApiContext, 'stopping'>): AbortSignal {
  return AbortSignal.any([abortOnDisconnect(reply).signal, stopping])
}

async function* writeLines(
  pages: AsyncGenerator<readonly AuditRow[]>,
  first: readonly AuditRow[],
  signal: AbortSignal,
  onDefect: (error: unknown) => void,
): AsyncGenerator<Part> {
  let entries = 0
  let isComplete = true
  try {
    for (let rows = first; rows.length > 0; ) {
      yield* takeTurns(rows.map((row) => `${JSON.stringify(viewAudit(row))}\n`))
      entries += rows.length
      const next = signal.aborted ? undefined : await pages.next()
      isComplete = next !== undefined
      rows = next === undefined || next.done ? [] : next.value
    }
  } catch (error) {
    isComplete = false
    onDefect(error)
  }
  yield `${JSON.stringify({ end: { is_complete: isComplete, entries } })}\n`
}

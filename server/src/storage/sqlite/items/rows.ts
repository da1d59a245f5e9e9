/** The rows of the tables `items` and `archive`: their columns, encoder and decoder. */

import { isRedriving, noDeadline } from '../../../core/dead-letters/letter.ts'
import { type Item, type ItemHead, type ListedState, toListedState } from '../../../core/items/item.ts'
import { computeDueAt } from '../../../core/items/transitions.ts'
import type { Instant } from '../../../core/time/instant.ts'
import { headBytes, type ListedLetter, redrivesCounted } from '../../contract/letters.ts'
import {
  decodeFacts,
  decodeFailure,
  decodeHeaders,
  decodeHistory,
  decodeOrigin,
  encodeFacts,
  encodeFailure,
  encodeHeaders,
  encodeHistory,
  encodeOrigin,
  toLeaseDeadline,
  withState,
} from '../../shared/items/item-row.ts'
import { traceHeaderStart, traceValueLength } from '../../shared/letters/trace-id.ts'
import type { Bound, Values } from '../connection/database.ts'
import type { QueueRow } from '../queues/queue-cache.ts'

/** The column `state`. The numbers are part of the schema: the partial indexes name them. */
export const stateCodes = { waiting: 0, leased: 1, done: 2, dead: 3, discarded: 4 } as const
/** The column `letter_state`: letters are listed and counted with scheduled separate from waiting. */
export const listedCodes = { ...stateCodes, scheduled: 5 } as const satisfies Record<ListedState, number>

const listedByCode: readonly ListedState[] = ['waiting', 'leased', 'done', 'dead', 'discarded', 'scheduled']

export function decodeListedState(code: unknown): ListedState {
  const state = typeof code === 'number' ? listedByCode[code] : undefined
  if (state === undefined) throw new Error(`there is no state with the code ${code}`)
  return state
}

/** In the order of the encoder. The payload is last, because a row that is read without it is read faster. */
export const itemColumns = [
  'queue_id',
  'partition',
  'id',
  'root_id',
  'source_id',
  'state',
  'attempts',
  'attempts_max',
  'priority',
  'kind',
  'encoding',
  'reference',
  'key',
  'headers',
  'created_at',
  'updated_at',
  'expire_deadline',
  'available_at',
  'lease_holder',
  'lease_deadline',
  'ended_at',
  'died_at',
  'due_at',
  'failure',
  'origin',
  'letter_id',
  'redrives',
  'group_id',
  'letter_state',
  'letter_redrives',
  'redrive_at',
  'history',
  'letter',
  'key_run',
  'payload',
] as const

type Column = (typeof itemColumns)[number]
/** The position of each column in a row. */
const at = Object.fromEntries(itemColumns.map((column, position) => [column, position])) as Record<
  Column,
  number
>

export const itemColumnList = itemColumns.join(', ')

/** The columns at the same positions in the row, but with nothing in the columns of `omitted`. */
export function omitColumns(omitted: readonly string[]): string {
  return itemColumns
    .map((column) => {
      if (!omitted.includes(column)) return column
      return column === 'payload' ? "x'' as payload" : `null as ${column}`
    })
    .join(', ')
}

/** For `toItemHead`: rules decide without the bytes of an item. */
export const headColumnList = omitColumns(['key', 'headers', 'payload'])

/** `keyRun`: for a new letter with a key, see letters/key-runs.ts. */
export function toItemValues(queueRow: QueueRow, item: Item, keyRun: number | null = null): Bound[] {
  return toRowValues(queueRow, item, item.key, encodeHeaders(item.headers), keyRun, item.payload)
}

/** With null in the columns of the bytes, for an update that leaves these columns out. */
export function toHeadValues(queueRow: QueueRow, head: ItemHead): Bound[] {
  return toRowValues(queueRow, head, null, null, null, null)
}

function toRowValues(
  queueRow: QueueRow,
  head: ItemHead,
  key: Uint8Array | null,
  headers: string | null,
  keyRun: number | null,
  payload: Uint8Array | null,
): Bound[] {
  return [
    queueRow.id,
    head.partition,
    head.id,
    head.rootId,
    head.sourceId,
    stateCodes[head.state],
    head.attempts,
    head.attemptsMax,
    head.priority,
    head.kind,
    head.encoding,
    head.reference,
    key,
    headers,
    head.createdAt,
    head.updatedAt,
    head.expireDeadline,
    head.state === 'waiting' ? head.availableAt : null,
    head.state === 'leased' ? head.lease.holder : null,
    toLeaseDeadline(head),
    'endedAt' in head ? head.endedAt : null,
    head.deadLetteredAt,
    computeDueAtColumn(head, queueRow),
    encodeFailure(head.failure),
    encodeOrigin(head.origin),
    head.letterId,
    head.retryCount,
    head.groupId,
    head.groupId === null ? null : listedCodes[toListedState(head)],
    head.groupId === null ? null : Math.min(head.retryCount, redrivesCounted),
    head.letter?.nextRedriveAt ?? null,
    encodeHistory(head.history),
    head.letter && encodeFacts(head.letter),
    keyRun,
    payload,
  ]
}

/** A letter whose redrive is an item of this store has no due time: its redrive ends with that item. */
function computeDueAtColumn(head: ItemHead, { queue }: QueueRow): Instant | null {
  const time = computeDueAt(head, queue)
  return time === noDeadline && isRedriving(head) ? null : time
}

/** The id of the queue's row. */
export function readQueueId(row: Values): number {
  return row[at.queue_id] as number
}

export function readPayloadBytes(row: Values): number {
  return (row[at.payload] as Uint8Array).length
}

/** From a row that has the length of the payload after the columns of the item. */
export function readPayloadLength(row: Values): number {
  return row[itemColumns.length] as number
}

/** From a row that has the column `rowid` after the columns of the item. */
export function readRowid(row: Values): number {
  return row[itemColumns.length] as number
}

/** From a row that has the column `archived_at` after the columns of the item. */
export function readArchivedAt(row: Values): Instant {
  return row[itemColumns.length] as number
}

/** From a row of `itemColumnList`. */
export function toItem(row: Values, queueName: string): Item {
  return decode(row, queueName)
}

/** From a row of `headColumnList`. The type hides the fields of the bytes, which are empty. */
export function toItemHead(row: Values, queueName: string): ItemHead {
  return decode(row, queueName)
}

/**
 * The one place that asserts the types of the columns. Checking each of them at run time would slow every
 * lease.
 */
function decode(row: Values, queueName: string): Item {
  const groupId = row[at.group_id] as number | null
  const base = {
    id: row[at.id] as string,
    rootId: row[at.root_id] as string,
    queue: queueName,
    partition: row[at.partition] as number,
    sourceId: row[at.source_id] as string | null,
    attempts: row[at.attempts] as number,
    attemptsMax: row[at.attempts_max] as number,
    priority: row[at.priority] as number,
    kind: row[at.kind] as string,
    encoding: row[at.encoding] as string,
    reference: row[at.reference] as string,
    key: row[at.key] as Uint8Array | null,
    headers: decodeHeaders(row[at.headers] as string | null),
    payload: row[at.payload] as Uint8Array,
    createdAt: row[at.created_at] as number,
    updatedAt: row[at.updated_at] as number,
    expireDeadline: row[at.expire_deadline] as number,
    failure: decodeFailure(row[at.failure] as string | null),
    origin: decodeOrigin(row[at.origin] as string | null),
    deadLetteredAt: row[at.died_at] as number | null,
    letterId: row[at.letter_id] as string | null,
    retryCount: row[at.redrives] as number,
    groupId,
    history: decodeHistory(row[at.history] as string | null),
    letter:
      groupId === null
        ? null
        : decodeFacts(row[at.letter] as string | null, row[at.redrive_at] as number | null),
  }
  return withState(base, decodeListedState(row[at.state]), {
    availableAt: row[at.available_at] as number | null,
    leaseHolder: row[at.lease_holder] as string | null,
    leaseDeadline: row[at.lease_deadline] as number | null,
    endedAt: row[at.ended_at] as number | null,
  })
}

/** The header `traceparent` alone, in the form of the column. */
const traceText = `substr(headers, instr(headers, '${traceHeaderStart}') + ${traceHeaderStart.length}, ${traceValueLength})`
const traceHeader = `case when instr(headers, '${traceHeaderStart}') > 0
  then '[${traceHeaderStart}' || substr(${traceText}, 1, instr(${traceText} || '"', '"') - 1) || '"]]' end as headers`

/**
 * For a page of letters: the columns at the same positions, without history, with the header `traceparent`
 * alone and with the beginning of the payload. The full length of the payload follows. (`substr` of an empty
 * payload is null.)
 */
export const listedColumnList = [
  ...itemColumns.map((column) => {
    if (column === 'payload') return `coalesce(substr(payload, 1, ${headBytes}), x'') as payload`
    if (column === 'headers') return traceHeader
    return column === 'history' ? `null as ${column}` : column
  }),
  'length(payload) as payload_bytes',
].join(', ')

/** From a row of `listedColumnList`. */
export function toListedLetter(row: Values, queueName: string): ListedLetter {
  const item = decode(row, queueName)
  const payloadBytes = readPayloadLength(row)
  return payloadBytes > headBytes ? { ...item, payloadBytes } : item
}

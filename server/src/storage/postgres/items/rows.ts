/** The rows of the tables `items` and `archive`: their columns, encoder and decoder. */

import type { Buffer } from 'node:buffer'
import { toRootId } from '../../../core/ids/ids.ts'
import {
  type Item,
  type ItemBytes,
  type ItemHead,
  type ItemHeadBase,
  type LetterFacts,
  type ListedState,
  toListedState,
} from '../../../core/items/item.ts'
import type { Queue } from '../../../core/items/queue.ts'
import { computeDueAt } from '../../../core/items/transitions.ts'
import { headBytes, type ListedLetter } from '../../contract/letters.ts'
import {
  decodeFacts,
  decodeFailure,
  decodeHeaders,
  decodeHistory,
  decodeOrigin,
  encodeAllFacts,
  encodeFacts,
  encodeFailure,
  encodeHeaders,
  encodeHistory,
  encodeOrigin,
  toLeaseDeadline,
  withState,
} from '../../shared/items/item-row.ts'
import { traceHeaderStart, traceValueLength } from '../../shared/letters/trace-id.ts'
import type { Row } from '../connection/connection.ts'
import {
  encodeBytes,
  encodeInt4s,
  encodeInt8s,
  encodeTexts,
  encodeUuids,
} from '../connection/encode-arrays.ts'

/** The column `state`. The numbers are part of the schema: the partial indexes name them. */
export const stateCodes = { waiting: 0, scheduled: 1, leased: 2, done: 3, dead: 4, discarded: 5 } as const
/** The states in the order of their numbers. */
export const stateNames = ['waiting', 'scheduled', 'leased', 'done', 'dead', 'discarded'] as const

export function decodeState(code: unknown): ListedState {
  const state = typeof code === 'number' ? stateNames[code] : undefined
  if (state === undefined) throw new Error(`there is no state with the code ${code}`)
  return state
}

/**
 * An item to be written, with the id of its queue's row. `queue`: its policy decides when the item is due.
 */
export type StoredItem = Readonly<{ queueId: number; queue: Queue; item: Item }>
/** The head of an item to be written: the columns of the bytes are left out. */
export type StoredHead = Readonly<{ queueId: number; queue: Queue; item: ItemHead }>

export type Column = Readonly<
  | { type: 'int4' | 'int8'; toValue: (stored: StoredItem) => number | null }
  | { type: 'text'; toValue: (stored: StoredItem) => string | null }
  /** The value is a KSUID. */
  | { type: 'uuid'; toValue: (stored: StoredItem) => string | null }
  | { type: 'bytea'; toValue: (stored: StoredItem) => Uint8Array | null }
>

const byteColumns = {
  key: { type: 'bytea', toValue: ({ item }: StoredItem) => item.key },
  headers: { type: 'text', toValue: ({ item }: StoredItem) => encodeHeaders(item.headers) },
  payload: { type: 'bytea', toValue: ({ item }: StoredItem) => item.payload },
} as const

export const columns = {
  queue_id: { type: 'int4', toValue: ({ queueId }: StoredHead) => queueId },
  partition: { type: 'int4', toValue: ({ item }: StoredHead) => item.partition },
  id: { type: 'text', toValue: ({ item }: StoredHead) => item.id },
  root_id: {
    type: 'text',
    toValue: ({ item }: StoredHead) => (item.rootId === toRootId(item.id) ? null : item.rootId),
  },
  source_id: { type: 'text', toValue: ({ item }: StoredHead) => item.sourceId },
  state: { type: 'int4', toValue: ({ item }: StoredHead) => stateCodes[toListedState(item)] },
  attempts: { type: 'int4', toValue: ({ item }: StoredHead) => item.attempts },
  attempts_max: { type: 'int4', toValue: ({ item }: StoredHead) => item.attemptsMax },
  priority: { type: 'int4', toValue: ({ item }: StoredHead) => item.priority },
  kind: { type: 'text', toValue: ({ item }: StoredHead) => item.kind || null },
  encoding: { type: 'text', toValue: ({ item }: StoredHead) => item.encoding || null },
  reference: { type: 'text', toValue: ({ item }: StoredHead) => item.reference || null },
  ...byteColumns,
  created_at: { type: 'int8', toValue: ({ item }: StoredHead) => item.createdAt },
  updated_at: { type: 'int8', toValue: ({ item }: StoredHead) => item.updatedAt },
  expire_deadline: { type: 'int8', toValue: ({ item }: StoredHead) => item.expireDeadline },
  available_at: {
    type: 'int8',
    toValue: ({ item }: StoredHead) => (item.state === 'waiting' ? item.availableAt : null),
  },
  lease_holder: {
    type: 'text',
    toValue: ({ item }: StoredHead) => (item.state === 'leased' ? item.lease.holder : null),
  },
  lease_deadline: { type: 'int8', toValue: ({ item }: StoredHead) => toLeaseDeadline(item) },
  ended_at: { type: 'int8', toValue: ({ item }: StoredHead) => ('endedAt' in item ? item.endedAt : null) },
  died_at: { type: 'int8', toValue: ({ item }: StoredHead) => item.deadLetteredAt },
  due_at: { type: 'int8', toValue: ({ item, queue }: StoredHead) => computeDueAt(toUnleased(item), queue) },
  failure: { type: 'text', toValue: ({ item }: StoredHead) => encodeFailure(item.failure) },
  origin: { type: 'text', toValue: ({ item }: StoredHead) => encodeOrigin(item.origin) },
  letter_id: { type: 'text', toValue: ({ item }: StoredHead) => item.letterId },
  redrives: { type: 'int4', toValue: ({ item }: StoredHead) => item.retryCount },
  group_id: { type: 'int4', toValue: ({ item }: StoredHead) => item.groupId },
  uuid: { type: 'uuid', toValue: ({ item }: StoredHead) => (isLetterRow(item) ? item.rootId : null) },
  history: { type: 'text', toValue: ({ item }: StoredHead) => encodeHistory(item.history) },
  letter: { type: 'text', toValue: ({ item }: StoredHead) => encodeLetter(item.letter) },
  redrive_at: { type: 'int8', toValue: ({ item }: StoredHead) => item.letter?.nextRedriveAt ?? null },
} as const satisfies Record<string, Column>

/** Leases do not end through `due_at`, see lease-ends.ts. */
function toUnleased(item: ItemHead): ItemHead {
  return item.state === 'leased' ? { ...item, state: 'waiting', availableAt: null } : item
}

/** Null for a letter that nothing was done with. The decoder does not read `redrive_at`. */
function encodeLetter(facts: LetterFacts | null): string | null {
  if (facts === null) return null
  return facts.nextRedriveAt === null ? encodeFacts(facts) : encodeAllFacts(facts)
}

export type ColumnName = keyof typeof columns
export type HeadColumnName = Exclude<ColumnName, keyof typeof byteColumns>

export const columnNames = Object.keys(columns) as readonly ColumnName[]
/** Rules decide without the bytes of an item, and no change of state touches them. */
export const headColumns = columnNames.filter(isHeadColumn)
/** The columns that the decoder needs; the others are derived from these. */
export const readColumns = columnNames.filter(isRead)
/** For `toItemHead`. */
export const readHeadColumns = headColumns.filter(isRead)

export function isHeadColumn(name: ColumnName): name is HeadColumnName {
  return !(name in byteColumns)
}

function isRead(name: ColumnName): boolean {
  return name !== 'uuid' && name !== 'redrive_at'
}

/** One array for each column, for `printUnnest`. */
export function encode(names: readonly HeadColumnName[], rows: readonly StoredHead[]): Buffer[]
export function encode(names: readonly ColumnName[], rows: readonly StoredItem[]): Buffer[]
export function encode(names: readonly ColumnName[], rows: readonly StoredHead[]): Buffer[] {
  return names.map((name) => encodeColumn(columns[name], rows as readonly StoredItem[]))
}

function encodeColumn(column: Column, rows: readonly StoredItem[]): Buffer {
  switch (column.type) {
    case 'int4':
      return encodeInt4s(rows.map(column.toValue))
    case 'int8':
      return encodeInt8s(rows.map(column.toValue))
    case 'text':
      return encodeTexts(rows.map(column.toValue))
    case 'uuid':
      return encodeUuids(rows.map(column.toValue))
    case 'bytea':
      return encodeBytes(rows.map(column.toValue))
  }
}

/** The value of each column if it is the same in all rows; undefined if a column differs. */
export function getSharedValues(
  names: readonly HeadColumnName[],
  rows: readonly StoredHead[],
): unknown[] | undefined
export function getSharedValues(
  names: readonly ColumnName[],
  rows: readonly StoredItem[],
): unknown[] | undefined
export function getSharedValues(
  names: readonly ColumnName[],
  rows: readonly StoredHead[],
): unknown[] | undefined {
  const [first, ...others] = rows as readonly StoredItem[]
  if (first === undefined) return undefined
  const values: unknown[] = []
  for (const name of names) {
    const { toValue } = columns[name]
    const value = toValue(first)
    for (const other of others) if (toValue(other) !== value) return undefined
    values.push(value)
  }
  return values
}

/** Inserts all columns of the rows that are encoded in the parameters from 1 on. */
export function insertSql(table: 'items_live' | 'items_sourced'): string {
  return `insert into redrive.${table} (${columnNames.join(', ')}, is_sourced)
    select ${columnNames.map((name) => `i.${name}`).join(', ')}, ${table === 'items_sourced'}
    from ${printUnnest(columnNames, 'i', 1)}`
}

/** The encoded rows as a table `alias`; their parameters start at number `first`. */
export function printUnnest(names: readonly ColumnName[], alias: string, first: number): string {
  return `unnest(${printArrayParameters(names, first)}) as ${alias}(${names.join(', ')})`
}

/** One parameter for each column, for single values; they start at number `first`. */
export function printValueParameters(names: readonly ColumnName[], first: number): string {
  return names.map((name, index) => `$${first + index}::${columns[name].type}`).join(', ')
}

/** One parameter for each column, for arrays of values; they start at number `first`. */
export function printArrayParameters(names: readonly ColumnName[], first: number): string {
  return names.map((name, index) => `$${first + index}::${columns[name].type}[]`).join(', ')
}

/**
 * Whether the row of the item is in `items_sourced`, the table of letters and of items with a source id. The
 * other items are in `items_live`. An item never changes its table.
 */
export function isLetterRow(item: Pick<ItemHead, 'sourceId' | 'origin'>): boolean {
  return item.sourceId !== null || item.origin !== null
}

/** From a row of `readColumns`. */
export function toItem(row: Row, queueName: string): Item {
  return decode(row, queueName)
}

/** From a row of `readHeadColumns`. The type hides the fields of the bytes, which are empty. */
export function toItemHead(row: Row, queueName: string): ItemHead {
  return decode(row, queueName)
}

function decode(row: Row, queueName: string): Item {
  return withState(decodeBase(row, queueName), decodeState(row.state), {
    availableAt: row.available_at as number | null,
    leaseHolder: row.lease_holder as string | null,
    leaseDeadline: row.lease_deadline as number | null,
    endedAt: row.ended_at as number | null,
  })
}

const noBytes = new Uint8Array()

/**
 * The fields that every state has. The one place that asserts the types of the columns: checking each of them
 * at run time would slow every lease.
 */
export function decodeBase(row: Row, queueName: string): Readonly<ItemHeadBase & ItemBytes> {
  return {
    id: row.id as string,
    rootId: (row.root_id as string | null) ?? (row.id as string),
    queue: queueName,
    partition: row.partition as number,
    sourceId: row.source_id as string | null,
    attempts: row.attempts as number,
    attemptsMax: row.attempts_max as number,
    priority: row.priority as number,
    kind: (row.kind as string | null) ?? '',
    encoding: (row.encoding as string | null) ?? '',
    reference: (row.reference as string | null) ?? '',
    key: (row.key as Uint8Array | null | undefined) ?? null,
    headers: decodeHeaders(row.headers as string | null | undefined),
    payload: (row.payload as Uint8Array | undefined) ?? noBytes,
    createdAt: row.created_at as number,
    updatedAt: row.updated_at as number,
    expireDeadline: row.expire_deadline as number,
    failure: decodeFailure(row.failure as string | null),
    origin: decodeOrigin(row.origin as string | null),
    deadLetteredAt: row.died_at as number | null,
    letterId: row.letter_id as string | null,
    retryCount: row.redrives as number,
    history: decodeHistory(row.history as string | null | undefined),
    groupId: row.group_id as number | null,
    letter: decodeLetterFacts(row.letter as string | null, row.origin !== null),
  }
}

function decodeLetterFacts(text: string | null, isLetter: boolean): LetterFacts | null {
  return text !== null || isLetter ? decodeFacts(text, null) : null
}

/** The beginning of the payload and its full length, which PostgreSQL knows without reading it. */
export const payloadStart = `substring(f.payload from 1 for ${headBytes}) as payload, octet_length(f.payload) as payload_bytes`

/** The header `traceparent` alone, in the form of the column. */
export const traceHeader = `case when strpos(f.headers, '${traceHeaderStart}') > 0
  then '[${traceHeaderStart}' || split_part(substring(f.headers from strpos(f.headers, '${traceHeaderStart}') + ${traceHeaderStart.length} for ${traceValueLength}), '"', 1) || '"]]' end as headers`

/**
 * For a page of letters, from a table `f`: without history, with the header `traceparent` alone and with the
 * beginning of the payload.
 */
export const listedColumns = `${readColumns
  .filter((name) => name !== 'payload' && name !== 'headers' && name !== 'history')
  .map((name) => `f.${name}`)
  .join(', ')}, ${traceHeader}, ${payloadStart}`

/** From a row of `listedColumns`, or a row with the whole payload. */
export function toListedLetter(row: Row, queueName: string): ListedLetter {
  const item = decode(row, queueName)
  const payloadBytes = row.payload_bytes as number | undefined
  return payloadBytes !== undefined && payloadBytes > headBytes ? { ...item, payloadBytes } : item
}

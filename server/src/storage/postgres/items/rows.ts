import { Buffer } from 'node:buffer'
import {
  type Failure,
  type Header,
  type Item,
  type LetterFacts,
  listedState,
  type Origin,
  type Waiting,
} from '../../../core/item.ts'
import type { Queue } from '../../../core/queue.ts'
import { dueAt } from '../../../core/transitions.ts'
import { headBytes, type ListedLetter } from '../../contract/letters.ts'
import { leaseDeadlineOf, waitingOf } from '../../shared/lease-deadline.ts'
import type { Row } from '../connection/connections.ts'
import { bytes, int4s, int8s, texts, uuids } from '../connection/encode-arrays.ts'

/** As stored. The numbers are part of the schema: the partial indexes name them. */
export const stateCodes = { waiting: 0, scheduled: 1, leased: 2, done: 3, dead: 4, discarded: 5 } as const

export const stateNames = ['waiting', 'scheduled', 'leased', 'done', 'dead', 'discarded'] as const

/** An item with what the rules of its queue make of it. */
export type Stored = Readonly<{ queueId: number; queue: Queue; item: Item }>

export type Column = Readonly<
  | { type: 'int4' | 'int8'; of: (stored: Stored) => number | null }
  | { type: 'text'; of: (stored: Stored) => string | null }
  /** Given as a KSUID. */
  | { type: 'uuid'; of: (stored: Stored) => string | null }
  | { type: 'bytea'; of: (stored: Stored) => Uint8Array | null }
>

export const columns = {
  queue_id: { type: 'int4', of: ({ queueId }) => queueId },
  partition: { type: 'int4', of: ({ item }) => item.partition },
  id: { type: 'text', of: ({ item }) => item.id },
  root_id: { type: 'text', of: ({ item }) => (item.rootId === item.id ? null : item.rootId) },
  source_id: { type: 'text', of: ({ item }) => item.sourceId },
  state: { type: 'int4', of: ({ item }) => stateCodes[listedState(item)] },
  attempts: { type: 'int4', of: ({ item }) => item.attempts },
  attempts_max: { type: 'int4', of: ({ item }) => item.attemptsMax },
  priority: { type: 'int4', of: ({ item }) => item.priority },
  kind: { type: 'text', of: ({ item }) => item.kind || null },
  encoding: { type: 'text', of: ({ item }) => item.encoding || null },
  reference: { type: 'text', of: ({ item }) => item.reference || null },
  key: { type: 'bytea', of: ({ item }) => item.key },
  headers: { type: 'text', of: ({ item }) => headersToText(item.headers) },
  payload: { type: 'bytea', of: ({ item }) => item.payload },
  created_at: { type: 'int8', of: ({ item }) => item.createdAt },
  updated_at: { type: 'int8', of: ({ item }) => item.updatedAt },
  expire_deadline: { type: 'int8', of: ({ item }) => item.expireDeadline },
  available_at: { type: 'int8', of: ({ item }) => (item.state === 'waiting' ? item.availableAt : null) },
  lease_holder: { type: 'text', of: ({ item }) => (item.state === 'leased' ? item.lease.holder : null) },
  lease_deadline: { type: 'int8', of: ({ item }) => leaseDeadlineOf(item) },
  ended_at: {
    type: 'int8',
    of: ({ item }) => ('endedAt' in item ? item.endedAt : null),
  },
  died_at: { type: 'int8', of: ({ item }) => item.diedAt },
  due_at: { type: 'int8', of: ({ item, queue }) => dueAt(unleased(item), queue) },
  failure: { type: 'text', of: ({ item }) => item.failure && JSON.stringify(item.failure) },
  origin: { type: 'text', of: ({ item }) => item.origin && JSON.stringify(item.origin) },
  letter_id: { type: 'text', of: ({ item }) => item.letterId },
  redrives: { type: 'int4', of: ({ item }) => item.redrives },
  group_id: { type: 'int4', of: ({ item }) => item.groupId },
  uuid: { type: 'uuid', of: ({ item }) => (isLetterRow(item) ? item.rootId : null) },
  history: {
    type: 'text',
    of: ({ item }) => (item.history.length === 0 ? null : JSON.stringify(item.history)),
  },
  // Null for a letter with which nothing was done yet, which is most of them.
  letter: { type: 'text', of: ({ item }) => (isUntouched(item.letter) ? null : JSON.stringify(item.letter)) },
  redrive_at: { type: 'int8', of: ({ item }) => item.letter?.nextRedriveAt ?? null },
} as const satisfies Record<string, Column>

/** When a lease ends stands elsewhere, see lease-ends.ts. */
function unleased(item: Item): Item {
  return item.state === 'leased' ? { ...item, state: 'waiting', availableAt: null } : item
}

export type ColumnName = keyof typeof columns
export const columnNames = Object.keys(columns) as readonly ColumnName[]

/** What an item is decided by: all but the bytes, which no change of state touches. */
export const decisiveColumns: readonly ColumnName[] = columnNames.filter(
  (name) => name !== 'payload' && name !== 'key' && name !== 'headers',
)

/** What an item is made of when it is read; the others follow from these. */
export const readColumns = columnNames.filter(isRead)
export const readDecisiveColumns = decisiveColumns.filter(isRead)

function isRead(name: ColumnName): boolean {
  return name !== 'uuid' && name !== 'redrive_at'
}

/** One array per column, for `unnestOf`. */
export function encode(names: readonly ColumnName[], rows: readonly Stored[]): Buffer[] {
  return names.map((name) => encodeColumn(columns[name], rows))
}

function encodeColumn(column: Column, rows: readonly Stored[]): Buffer {
  switch (column.type) {
    case 'int4':
      return int4s(rows.map(column.of))
    case 'int8':
      return int8s(rows.map(column.of))
    case 'text':
      return texts(rows.map(column.of))
    case 'uuid':
      return uuids(rows.map(column.of))
    case 'bytea':
      return bytes(rows.map(column.of))
  }
}

/** The value of each column, when it is the same in all rows. */
export function sharedValues(names: readonly ColumnName[], rows: readonly Stored[]): unknown[] | undefined {
  const [first, ...others] = rows
  if (first === undefined) return undefined
  const values: unknown[] = []
  for (const name of names) {
    const { of } = columns[name]
    const value = of(first)
    for (const other of others) if (of(other) !== value) return undefined
    values.push(value)
  }
  return values
}

/** All columns of the rows that are encoded in the parameters from 1 on. */
export function insertInto(table: string, isSourcedTable: boolean): string {
  return `insert into redrive.${table} (${columnNames.join(', ')}, is_sourced)
    select ${columnNames.map((name) => `i.${name}`).join(', ')}, ${isSourcedTable}
    from ${unnestOf(columnNames, 'i', 1)}`
}

/** The rows that were encoded, as a table `alias`; its parameters start at number `first`. */
export function unnestOf(names: readonly ColumnName[], alias: string, first: number): string {
  return `unnest(${parametersOf(names, first)}) as ${alias}(${names.join(', ')})`
}

/** One value for each column; they start at parameter number `first`. */
export function valuesOf(names: readonly ColumnName[], first: number): string {
  return names.map((name, index) => `$${first + index}::${columns[name].type}`).join(', ')
}

export function parametersOf(names: readonly ColumnName[], first: number): string {
  return names.map((name, index) => `$${first + index}::${columns[name].type}[]`).join(', ')
}

/** Whether the row belongs with what came from elsewhere. Fixed for its life: rows do not change sides. */
export function isLetterRow(item: Pick<Item, 'sourceId' | 'origin'>): boolean {
  return item.sourceId !== null || item.origin !== null
}

const noBytes = new Uint8Array()
const noHistory: readonly Failure[] = []

type Base = Omit<Waiting, 'state' | 'availableAt'>

/** What every state has. A row read without its bytes gives an item without them. */
export function baseOf(row: Row, queueName: string): Base {
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
    headers: headersOf(row.headers as string | null | undefined),
    payload: (row.payload as Uint8Array | undefined) ?? noBytes,
    createdAt: row.created_at as number,
    updatedAt: row.updated_at as number,
    expireDeadline: row.expire_deadline as number,
    failure: row.failure === null ? null : (JSON.parse(row.failure as string) as Failure),
    origin: row.origin === null ? null : (JSON.parse(row.origin as string) as Origin),
    diedAt: row.died_at as number | null,
    letterId: row.letter_id as string | null,
    redrives: row.redrives as number,
    history: typeof row.history === 'string' ? (JSON.parse(row.history) as Failure[]) : noHistory,
    groupId: row.group_id as number | null,
    letter: factsOf(row),
  }
}

const untouched: LetterFacts = {
  requeues: 0,
  lastRedriveAt: null,
  redrives: [],
  nextRedriveAt: null,
  discardReason: '',
}

function isUntouched(letter: LetterFacts | null): boolean {
  if (letter === null) return true
  const { requeues, lastRedriveAt, redrives, nextRedriveAt, discardReason, restoredAt } = letter
  return (
    requeues === 0 &&
    lastRedriveAt === null &&
    redrives.length === 0 &&
    nextRedriveAt === null &&
    discardReason === '' &&
    restoredAt === undefined
  )
}

function factsOf(row: Row): LetterFacts | null {
  if (row.letter !== null) return JSON.parse(row.letter as string) as LetterFacts
  return row.origin === null ? null : untouched
}

export function itemOf(row: Row, queueName: string): Item {
  const base = baseOf(row, queueName)
  switch (stateNames[row.state as number]) {
    case 'waiting':
    case 'scheduled':
      return waitingOf(base, row.available_at as number | null, row.lease_deadline as number | null)
    case 'leased': {
      const lease = { holder: row.lease_holder as string, deadline: row.lease_deadline as number }
      return { ...base, state: 'leased', lease }
    }
    case 'done':
      return { ...base, state: 'done', endedAt: row.ended_at as number }
    case 'discarded':
      return { ...base, state: 'discarded', endedAt: row.ended_at as number }
    default:
      return { ...base, state: 'dead', endedAt: row.ended_at as number }
  }
}

/** Of a table called `f`. How long a payload is costs no look at it. */
export const payloadHead = `substring(f.payload from 1 for ${headBytes}) as payload, octet_length(f.payload) as payload_bytes`
export const headColumns = `${readColumns
  .filter((name) => name !== 'payload' && name !== 'headers' && name !== 'history')
  .map((name) => `f.${name}`)
  .join(', ')}, ${payloadHead}`

/** From a row that may have only the beginning of its payload. */
export function headOf(row: Row, queueName: string): ListedLetter {
  const item = itemOf(row, queueName)
  const payloadBytes = row.payload_bytes as number | undefined
  return payloadBytes !== undefined && payloadBytes > headBytes ? { ...item, payloadBytes } : item
}

const noHeaders: readonly Header[] = []

export function headersToText(headers: readonly Header[]): string | null {
  if (headers.length === 0) return null
  let text = '['
  for (const [name, value] of headers) {
    text += `${text.length === 1 ? '' : ','}[${JSON.stringify(name)},${value === null ? 'null' : `"${base64(value)}"`}]`
  }
  return `${text}]`
}

function base64({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64')
}

export function headersOf(text: string | null | undefined): readonly Header[] {
  if (text === null || text === undefined) return noHeaders
  const pairs = JSON.parse(text) as readonly (readonly [string, string | null])[]
  return pairs.map(([name, value]) => [
    name,
    value === null ? null : new Uint8Array(Buffer.from(value, 'base64')),
  ])
}

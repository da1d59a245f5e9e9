/**
 * What a lease brings back of each row. It is the one result that is read thousands of times a second, and
 * every column costs on both sides: so what is nearly always empty travels together in one, `rest`, which is
 * null while all of it is.
 */
import { Buffer } from 'node:buffer'
import type { Lease, Leased } from '../../../core/item.ts'
import type { Row } from '../connection/connection.ts'
import { parseBytes } from '../connection/parse-values.ts'
import { type ColumnName, readBase, readColumns } from './rows.ts'

/** What every leased item has, or whoever leases knows, need not travel. */
const untold: readonly ColumnName[] = [
  'queue_id',
  'partition',
  'state',
  'available_at',
  'ended_at',
  'due_at',
  'updated_at',
  'lease_holder',
  'lease_deadline',
]
/** What most items have, or a queue gives to all of its own. */
const told = [
  'id',
  'attempts',
  'priority',
  'created_at',
  'expire_deadline',
  'kind',
  'encoding',
  'reference',
  'payload',
] as const satisfies readonly ColumnName[]
const rare = readColumns.filter(
  (name) => !untold.includes(name) && !(told as readonly ColumnName[]).includes(name),
)
/** These are never null; empty is 0. */
const numbers: readonly ColumnName[] = ['attempts_max', 'redrives']

export const leasedNames = [...told, 'rest'] as const

/** Of the row `t`, in the order of `leasedNames`. */
export function leasedColumns(t: string): string {
  const isEmpty = rare.map((name) => `${t}.${name} ${numbers.includes(name) ? '= 0' : 'is null'}`)
  const pairs = rare.map((name) => `'${name}', ${t}.${name}`)
  return `${told.map((name) => (name === 'payload' ? encoded(`${t}.payload`) : `${t}.${name}`)).join(', ')},
    case when ${isEmpty.join(' and ')} then null else json_build_object(${pairs.join(', ')}) end as rest`
}

/** A third shorter than the hexadecimal text that bytes travel as otherwise, and quicker to write and read. */
function encoded(payload: string): string {
  return `encode(${payload}, 'base64') as payload`
}

/** A row as a list: the turn, the place, then `leasedNames`. */
export type LeasedValues = readonly [
  turn: string,
  place: string,
  id: string,
  attempts: string,
  priority: string,
  createdAt: string,
  expireDeadline: string,
  kind: string | null,
  encoding: string | null,
  reference: string | null,
  payload: string,
  rest: string | null,
]

/** Without an id of its own: what has no root id is its own root. */
const emptyRow: Row = {
  id: '',
  ...Object.fromEntries(rare.map((name) => [name, numbers.includes(name) ? 0 : null])),
}
const empty = readBase(emptyRow, '')

export function toLeased(
  values: LeasedValues,
  queue: string,
  partition: number,
  updatedAt: number,
  lease: Lease,
): Leased {
  const [id, rest] = [values[2], values[11]]
  const base = rest === null ? empty : restOf(rest)
  return {
    ...base,
    id,
    rootId: base.rootId || id,
    queue,
    partition,
    attempts: Number(values[3]),
    priority: Number(values[4]),
    createdAt: Number(values[5]),
    updatedAt,
    expireDeadline: Number(values[6]),
    kind: values[7] ?? '',
    encoding: values[8] ?? '',
    reference: values[9] ?? '',
    payload: payloadOf(values[10]),
    state: 'leased',
    lease,
  }
}

function payloadOf(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'base64')
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function restOf(rest: string): typeof empty {
  const row = JSON.parse(rest) as Row
  const key = row.key === null ? null : parseBytes(row.key as string)
  return readBase({ id: '', ...row, key }, '')
}

/**
 * The rows that a lease returns. Thousands of them are read per second, and every column costs time on both
 * sides. So the columns that are nearly always empty are combined into one column, `rare`, which is null if
 * all of them are empty.
 */
import { Buffer } from 'node:buffer'
import type { Lease, Leased } from '../../../core/items/item.ts'
import { readTextOrNull } from '../../shared/rows/row-values.ts'
import type { Row } from '../connection/connection.ts'
import { parseBytes } from '../connection/parse-values.ts'
import { parseLocation, type RowLocation } from './leased-row-locations.ts'
import { type ColumnName, decodeBase, readColumns } from './rows.ts'

/** The columns that are the same for every leased item, or that the caller knows. They are not returned. */
const omitted: readonly ColumnName[] = [
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
/** The columns that most items have. */
const common = [
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
  (name) => !omitted.includes(name) && !(common as readonly ColumnName[]).includes(name),
)
/** These rare columns are never null: 0 is their empty value. */
const rareNumbers: readonly ColumnName[] = ['attempts_max', 'redrives']

export const leasedNames = [...common, 'rare'] as const

/** The columns of the row `t`, in the order of `leasedNames`. */
export function printLeasedColumns(t: string): string {
  const isEmpty = rare.map((name) => `${t}.${name} ${rareNumbers.includes(name) ? '= 0' : 'is null'}`)
  const pairs = rare.map((name) => `'${name}', ${t}.${name}`)
  return `${common.map((name) => (name === 'payload' ? printPayloadColumn(t) : `${t}.${name}`)).join(', ')},
    case when ${isEmpty.join(' and ')} then null else json_build_object(${pairs.join(', ')}) end as rare`
}

/** Base64 is a third shorter than the hexadecimal text of a bytea, and faster to write and read. */
function printPayloadColumn(t: string): string {
  return `encode(${t}.payload, 'base64') as payload`
}

/** A row as PostgreSQL sends it: the ordinal of the item's holder, the location of the row, `leasedNames`. */
export type LeasedValues = readonly [
  ordinal: string,
  location: string,
  id: string,
  attempts: string,
  priority: string,
  createdAt: string,
  expireDeadline: string,
  kind: string | null,
  encoding: string | null,
  reference: string | null,
  payload: string,
  rare: string | null,
]

/** The position of the row's holder in the list of holders, from 0. */
export function readHolderIndex(values: LeasedValues): number {
  return Number(values[0]) - 1
}

export function readLocation(values: LeasedValues): RowLocation {
  return parseLocation(values[1])
}

/** The values of the rare columns of an ordinary item. The id and the root id are set later. */
const emptyRow: Row = {
  id: '',
  ...Object.fromEntries(rare.map((name) => [name, rareNumbers.includes(name) ? 0 : null])),
}
const empty = decodeBase(emptyRow, '')

export function toLeased(
  values: LeasedValues,
  queue: string,
  partition: number,
  updatedAt: number,
  lease: Lease,
): Leased {
  const [id, rareText] = [values[2], values[11]]
  const base = rareText === null ? empty : decodeRare(rareText)
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
    payload: decodePayload(values[10]),
    state: 'leased',
    lease,
  }
}

function decodePayload(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'base64')
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function decodeRare(text: string): typeof empty {
  const row = JSON.parse(text) as Row
  const key = readTextOrNull(row, 'key')
  return decodeBase({ id: '', ...row, key: key && parseBytes(key) }, '')
}

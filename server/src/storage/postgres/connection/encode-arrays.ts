/**
 * Arrays in the binary format of PostgreSQL. `pg` sends a Buffer unchanged, so payloads are sent as bytes and
 * not as hexadecimal text, and no value has to be quoted or parsed.
 */
import { Buffer } from 'node:buffer'
import { uuidBytes, writeKsuidUuid } from '../../../core/ids/ksuid.ts'
import { locationsPerPage, type RowLocation } from '../items/leased-row-locations.ts'

const oid = { bytea: 17, int8: 20, int4: 23, text: 25, tid: 27, uuid: 2950 } as const
const headBytes = 20

type Texts = readonly (string | null)[]
type Numbers = readonly (number | null)[]

export function encodeTexts(values: Texts): Buffer {
  let size = headBytes
  for (const value of values) size += 4 + (value === null ? 0 : Buffer.byteLength(value))
  const array = start(oid.text, size, values.length)
  let at = headBytes
  for (const value of values) {
    const length = value === null ? -1 : array.write(value, at + 4)
    at = array.writeInt32BE(length, at) + Math.max(length, 0)
  }
  return array
}

export function encodeBytes(values: readonly (Uint8Array | null)[]): Buffer {
  let size = headBytes
  for (const value of values) size += 4 + (value === null ? 0 : value.byteLength)
  const array = start(oid.bytea, size, values.length)
  let at = headBytes
  for (const value of values) {
    at = array.writeInt32BE(value === null ? -1 : value.byteLength, at)
    if (value === null) continue
    array.set(value, at)
    at += value.byteLength
  }
  return array
}

export function encodeInt4s(values: Numbers): Buffer {
  const array = start(oid.int4, headBytes + values.length * 8, values.length)
  let at = headBytes
  for (const value of values) {
    at = array.writeInt32BE(value === null ? -1 : 4, at)
    if (value !== null) at = array.writeInt32BE(value, at)
  }
  return array.subarray(0, at)
}

export function encodeInt8s(values: Numbers): Buffer {
  const array = start(oid.int8, headBytes + values.length * 12, values.length)
  let at = headBytes
  for (const value of values) {
    at = array.writeInt32BE(value === null ? -1 : 8, at)
    if (value === null) continue
    const high = Math.floor(value / 2 ** 32)
    at = array.writeInt32BE(high, at)
    at = array.writeUInt32BE(value - high * 2 ** 32, at)
  }
  return array.subarray(0, at)
}

/** An array in text format, for values that need only quotes: locations and versions of rows. */
export function list(values: readonly string[]): string {
  return values.length === 0 ? '{}' : `{"${values.join('","')}"}`
}

/** The locations of rows, as the type `tid`. */
export function encodeTids(values: readonly RowLocation[]): Buffer {
  const array = start(oid.tid, headBytes + values.length * 10, values.length)
  let at = headBytes
  for (const value of values) {
    at = array.writeInt32BE(6, at)
    at = array.writeUInt32BE(Math.floor(value / locationsPerPage), at)
    at = array.writeUInt16BE(value % locationsPerPage, at)
  }
  return array
}

/** The UUIDs of KSUIDs. */
export function encodeUuids(ksuids: Texts): Buffer {
  const array = start(oid.uuid, headBytes + ksuids.length * (4 + uuidBytes), ksuids.length)
  let at = headBytes
  for (const ksuid of ksuids) {
    at = array.writeInt32BE(ksuid === null ? -1 : uuidBytes, at)
    if (ksuid === null) continue
    writeKsuidUuid(ksuid, array, at)
    at += uuidBytes
  }
  return array.subarray(0, at)
}

/**
 * The header of an array with one dimension, from index 1, that may contain nulls. An empty array has no
 * dimension.
 */
function start(elementOid: number, size: number, count: number): Buffer {
  const array = Buffer.allocUnsafe(count === 0 ? 12 : size)
  array.writeInt32BE(count === 0 ? 0 : 1, 0)
  array.writeInt32BE(1, 4)
  array.writeInt32BE(elementOid, 8)
  if (count > 0) {
    array.writeInt32BE(count, 12)
    array.writeInt32BE(1, 16)
  }
  return array
}

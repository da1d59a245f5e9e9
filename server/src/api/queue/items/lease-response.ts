/**
 * Writes the answer of queue.lease directly from the items, so that each payload is copied only once. A test
 * checks that the result equals the result of the descriptor.
 */
import { toBinary } from '@bufbuild/protobuf'
import { TimestampSchema } from '@bufbuild/protobuf/wkt'
import type { Leased } from '../../../core/items/item.ts'
import { formatTraceparent } from '../../../core/trace/trace-context.ts'
import { readTraceHeaders } from '../../../core/trace/trace-headers.ts'
import { largeBytesMin, type Part, writeBase64 } from '../../http/wire/json-parts.ts'
import { QueueLeaseResponseSchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import type { Writer } from '../protocol/codec.ts'
import { formatTime, toTimestamp } from '../protocol/times.ts'

/** `hasTraces`: JSON items have the trace of their headers in additional fields. */
export type LeaseResponse = Readonly<{
  queueName: string
  partition: number
  items: readonly Leased[]
  hasTraces?: boolean
}>

export const leaseResponse: Writer<LeaseResponse> & { desc: typeof QueueLeaseResponseSchema } = {
  desc: QueueLeaseResponseSchema,
  write: (body, format) => {
    if (format === 'protobuf') return writeProtobuf(body)
    return isLarge(body) ? writeJsonParts(body) : writeJson(body)
  },
}

function isLarge({ items }: LeaseResponse): boolean {
  let bytes = 0
  for (let index = 0; index < items.length; index++) bytes += (items[index] as Leased).payload.length
  return bytes >= largeBytesMin
}

/** `writeJson` in parts, with each large payload in parts. */
function* writeJsonParts({ items, ...rest }: LeaseResponse): Generator<Part> {
  yield `${writeJson({ ...rest, items: [] }).slice(0, -1)},"items":[`
  for (const [index, item] of items.entries()) {
    if (index > 0) yield ','
    const deadline = formatTime(item.lease.deadline)
    if (item.payload.length < largeBytesMin) yield writeItemJson(item, deadline, rest.hasTraces)
    else {
      yield `${writeItemJson({ ...item, payload: noBytes }, deadline, rest.hasTraces).slice(0, -1)},"bytes":"`
      yield* writeBase64(item.payload)
      yield '"}'
    }
  }
  yield ']}'
}

const noBytes = new Uint8Array()

function writeJson({ queueName, partition, items, hasTraces }: LeaseResponse): string {
  let text = `{"queue_name":${JSON.stringify(queueName)}`
  if (partition !== 0) text += `,"partition":${partition}`
  if (items.length > 0) text += ',"items":['
  // Usually all items of an answer have the same deadline.
  let deadline = Number.NaN
  let deadlineText = ''
  for (let index = 0; index < items.length; index++) {
    const item = items[index] as Leased
    if (item.lease.deadline !== deadline) {
      deadline = item.lease.deadline
      deadlineText = formatTime(deadline)
    }
    if (index > 0) text += ','
    text += writeItemJson(item, deadlineText, hasTraces)
  }
  return items.length > 0 ? `${text}]}` : `${text}}`
}

function writeItemJson(item: Leased, deadlineText: string, hasTraces = false): string {
  let text = '{'
  if (item.encoding !== '') text += `"encoding":${JSON.stringify(item.encoding)},`
  if (item.kind !== '') text += `"kind":${JSON.stringify(item.kind)},`
  if (item.reference !== '') text += `"reference":${JSON.stringify(item.reference)},`
  text += `"id":"${item.id}",`
  if (item.attempts !== 0) text += `"attempts":${item.attempts},`
  text += `"lease_deadline":"${deadlineText}"`
  if (hasTraces) text += writeTrace(item)
  if (item.payload.length > 0) text += `,"bytes":"${toBuffer(item.payload).toString('base64')}"`
  return `${text}}`
}

function writeTrace({ headers }: Leased): string {
  const trace = readTraceHeaders(headers)
  if (trace === undefined) return ''
  const state = trace.tracestate === '' ? '' : `,"tracestate":${JSON.stringify(trace.tracestate)}`
  return `,"traceparent":"${formatTraceparent(trace)}"${state}`
}

// Field number and wire type of each field, in one byte.
const tag = { text1: 0x0a, number2: 0x10, list3: 0x1a }
const itemTag = {
  encoding: 0x0a,
  kind: 0x12,
  reference: 0x1a,
  id: 0x22,
  attempts: 0x28,
  deadline: 0x32,
  bytes: 0x3a,
}

function writeProtobuf({ queueName, partition, items }: LeaseResponse): Buffer {
  const sizes = new Array<number>(items.length)
  const deadlines = new Map<number, Uint8Array>()
  let total = measureText(queueName) + (partition === 0 ? 0 : 1 + measureVarint(partition))
  for (let index = 0; index < items.length; index++) {
    const item = items[index] as Leased
    const { deadline } = item.lease
    let deadlineBytes = deadlines.get(deadline)
    if (deadlineBytes === undefined) {
      deadlineBytes = toBinary(TimestampSchema, toTimestamp(deadline))
      deadlines.set(deadline, deadlineBytes)
    }
    const size =
      measureText(item.encoding) +
      measureText(item.kind) +
      measureText(item.reference) +
      measureText(item.id) +
      (item.attempts === 0 ? 0 : 1 + measureVarint(item.attempts)) +
      (1 + measureVarint(deadlineBytes.length) + deadlineBytes.length) +
      measureBytes(item.payload.length)
    sizes[index] = size
    total += 1 + measureVarint(size) + size
  }

  const out = Buffer.allocUnsafe(total)
  let at = writeText(out, 0, tag.text1, queueName)
  if (partition !== 0) at = writeNumber(out, at, tag.number2, partition)
  for (let index = 0; index < items.length; index++) {
    const item = items[index] as Leased
    at = writeNumber(out, at, tag.list3, sizes[index] as number)
    at = writeText(out, at, itemTag.encoding, item.encoding)
    at = writeText(out, at, itemTag.kind, item.kind)
    at = writeText(out, at, itemTag.reference, item.reference)
    at = writeText(out, at, itemTag.id, item.id)
    if (item.attempts !== 0) at = writeNumber(out, at, itemTag.attempts, item.attempts)
    at = writeBytes(out, at, itemTag.deadline, deadlines.get(item.lease.deadline) as Uint8Array)
    if (item.payload.length > 0) at = writeBytes(out, at, itemTag.bytes, item.payload)
  }
  return out
}

function writeText(out: Buffer, at: number, fieldTag: number, text: string): number {
  if (text === '') return at
  const length = Buffer.byteLength(text)
  const start = writeNumber(out, at, fieldTag, length)
  out.write(text, start)
  return start + length
}

function writeBytes(out: Buffer, at: number, fieldTag: number, bytes: Uint8Array): number {
  const start = writeNumber(out, at, fieldTag, bytes.length)
  out.set(bytes, start)
  return start + bytes.length
}

function writeNumber(out: Buffer, at: number, fieldTag: number, value: number): number {
  let next = at
  out[next++] = fieldTag
  let rest = value
  while (rest > 0x7f) {
    out[next++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  out[next++] = rest
  return next
}

function measureText(text: string): number {
  return measureBytes(Buffer.byteLength(text))
}

/** Includes tag and length. An empty field has size 0, because it is omitted. */
function measureBytes(length: number): number {
  return length === 0 ? 0 : 1 + measureVarint(length) + length
}

function measureVarint(value: number): number {
  let size = 1
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) size++
  return size
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

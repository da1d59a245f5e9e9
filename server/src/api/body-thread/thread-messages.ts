/**
 * The messages between the server and its body thread. The memory of bytes changes its owner without being
 * copied.
 */
import { type ErrorCode, KnownError } from '../../errors.ts'
import type { BodyFacts } from '../http/bodies/body-reader.ts'
import { type FieldFault, InvalidRequest } from '../http/validation/invalid-request.ts'

export type ThreadRequest = Readonly<{ call: number; bytes: Uint8Array }> &
  (Readonly<{ ask: 'read'; reader: string; facts: BodyFacts }> | Readonly<{ ask: 'is-json' }>)

export type ThreadReply = Readonly<{ call: number } & ({ value: unknown } | { error: SentError })>

type SentError = Readonly<{
  code: ErrorCode | null
  message: string
  faults: readonly FieldFault[]
  stack: string
}>

/** A value to send, and the memory that changes its owner. */
type Movable = Readonly<{ value: unknown; moved: ArrayBuffer[] }>

/** Byte arrays from this size on keep their own memory. */
const movedBytesMin = 16 * 1_024

/** Copies a value. Large byte arrays keep their memory, small ones share a new block. */
export function prepareMove(value: unknown): Movable {
  const block = new ArrayBuffer(sumSmall(value))
  const moved = new Set<ArrayBuffer>([block])
  let at = 0
  const copy = (part: unknown): unknown => {
    if (part === null || typeof part !== 'object') return part
    if (Array.isArray(part)) return part.map(copy)
    if (!(part instanceof Uint8Array)) {
      return Object.fromEntries(Object.entries(part).map(([field, inner]) => [field, copy(inner)]))
    }
    if (movesAlone(part)) {
      moved.add(part.buffer)
      return part
    }
    const view = new Uint8Array(block, at, part.byteLength)
    view.set(part)
    at += part.byteLength
    return view
  }
  return { value: copy(value), moved: [...moved] }
}

function sumSmall(value: unknown): number {
  if (value === null || typeof value !== 'object') return 0
  if (value instanceof Uint8Array) return movesAlone(value) ? 0 : value.byteLength
  return Object.values(value).reduce((sum: number, part) => sum + sumSmall(part), 0)
}

/** Whether the array is large and nothing else can use its memory. */
function movesAlone(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  const { buffer, byteLength } = bytes
  return byteLength >= movedBytesMin && buffer instanceof ArrayBuffer && buffer.byteLength === byteLength
}

export function encodeError(error: unknown): SentError {
  const faults = error instanceof InvalidRequest ? error.faults : []
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const message = error instanceof Error ? error.message : String(error)
  return { code: error instanceof KnownError ? error.code : null, message, faults, stack }
}

export function decodeError({ code, message, faults, stack }: SentError): Error {
  if (faults.length > 0) return new InvalidRequest(faults)
  if (code !== null) return new KnownError(code, message)
  const error = new Error(message)
  error.stack = stack
  return error
}

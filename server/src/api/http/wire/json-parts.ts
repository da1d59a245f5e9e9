/**
 * Writes answers with large payloads part by part. The whole answer is never in memory: a part is encoded
 * when the client has received the parts before it, and other requests are answered between two parts.
 */
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { takeTurn } from '../../../turns.ts'
import { sendAs } from '../answers/send-as.ts'

/** Payloads from this size on are written in parts. */
export const largeBytesMin = 256 * 1_024
/** A multiple of 3, so that the base64 texts of two parts can be joined. */
const partBytes = 3 * 32 * 1_024

export type Part = string | Uint8Array
/** How bytes are written: as a JSON text, as a JSON text in base64, or unchanged because they are JSON. */
type Form = 'text' | 'base64' | 'json'

/** Bytes in an answer that are encoded when they are sent. */
export class LargeBytes {
  readonly bytes: Uint8Array
  readonly form: Form

  constructor(bytes: Uint8Array, form: Form) {
    this.bytes = bytes
    this.form = form
  }
}

/** The JSON of a value, in which `LargeBytes` may stand for texts and JSON values. */
export function* writeJsonParts(value: unknown): Generator<Part> {
  const large: LargeBytes[] = []
  // A text that no value contains: it is new for each answer.
  const mark = `large-${randomUUID()}`
  const text = JSON.stringify(value, (_, part: unknown) => {
    if (!(part instanceof LargeBytes)) return part
    large.push(part)
    return mark
  })
  for (const [index, between] of text.split(`"${mark}"`).entries()) {
    if (index > 0) yield* writeLarge(large[index - 1] as LargeBytes)
    yield between
  }
}

/** The JSON of an object whose only list has these elements, one element after the other. */
export function* writeListParts(
  name: string,
  elements: readonly unknown[],
  rest: Readonly<Record<string, unknown>> = {},
): Generator<Part> {
  yield `{${JSON.stringify(name)}:[`
  for (const [index, element] of elements.entries()) {
    if (index > 0) yield ','
    yield* writeJsonParts(element)
  }
  const fields = JSON.stringify(rest).slice(1)
  yield fields === '}' ? ']}' : `],${fields}`
}

export function* writeLarge({ bytes, form }: LargeBytes): Generator<Part> {
  if (form === 'json') {
    for (const part of splitBytes(bytes)) yield part
    return
  }
  yield '"'
  if (form === 'base64') yield* writeBase64(bytes)
  else yield* writeText(bytes)
  yield '"'
}

export function* writeBase64(bytes: Uint8Array): Generator<string> {
  for (const part of splitBytes(bytes)) yield part.toString('base64')
}

/** The bytes are UTF-8. */
function* writeText(bytes: Uint8Array): Generator<string> {
  // The decoder keeps a character that two parts share until it is complete.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  for (const part of splitBytes(bytes)) {
    yield JSON.stringify(decoder.decode(part, { stream: true })).slice(1, -1)
  }
}

function* splitBytes(bytes: Uint8Array): Generator<Buffer> {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let from = 0; from < whole.length; from += partBytes) yield whole.subarray(from, from + partBytes)
}

/** Sends parts, one per turn of the event loop, as fast as the client receives them. */
export function sendParts(reply: FastifyReply, contentType: string, parts: Iterable<Part>): FastifyReply {
  const iterator = parts[Symbol.iterator]()
  let start = ''
  for (let next = iterator.next(); ; next = iterator.next()) {
    if (next.done) return sendAs(reply, contentType, start)
    const part = next.value
    if (typeof part !== 'string' || start.length + part.length >= partBytes) {
      const stream = toStream(takeTurns(continueParts([start, part], iterator)))
      return reply.header('content-type', contentType).send(stream)
    }
    start += part
  }
}

function* continueParts(start: readonly Part[], rest: Iterator<Part>): Generator<Part> {
  yield* start
  for (let next = rest.next(); !next.done; next = rest.next()) yield next.value
}

export function toStream(parts: AsyncIterable<Part>): Readable {
  return Readable.from(parts, { objectMode: false, highWaterMark: 2 * partBytes })
}

/** Joins short parts, and takes a turn for each part that is yielded. */
export async function* takeTurns(parts: Iterable<Part>): AsyncGenerator<Part> {
  let short = ''
  for (const part of parts) {
    if (typeof part === 'string' && short.length + part.length < partBytes) {
      short += part
      continue
    }
    await takeTurn()
    if (short !== '') yield short
    short = ''
    yield part
  }
  if (short !== '') yield short
}

import { isAscii, isUtf8 } from 'node:buffer'
import {
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type MessageShape,
  toBinary,
  toJson,
} from '@bufbuild/protobuf'
import type { Format } from './format.ts'
import { contentError } from './unreadable.ts'

/** How one kind of body is read. */
export interface Reader<T> {
  /** Throws CONTENT_UNREADABLE. Bytes in what it gives are views of `bytes`. */
  read(bytes: Buffer, format: Format): T
}

/** How one kind of body is written. */
export interface Writer<T> {
  write(value: T, format: Format): string | Uint8Array
}

/** Reads and writes a message as its descriptor says. */
export function createCodec<Desc extends DescMessage>(
  desc: Desc,
): Reader<MessageShape<Desc>> & Writer<MessageShape<Desc>> & { desc: Desc } {
  return {
    desc,
    read: (bytes, format) => readMessage(desc, bytes, format),
    write: (message, format) => {
      if (format === 'protobuf') return toBinary(desc, message, { writeUnknownFields: false })
      return JSON.stringify(toJson(desc, message, { useProtoFieldName: true }))
    },
  }
}

export function readMessage<Desc extends DescMessage>(
  desc: Desc,
  bytes: Buffer,
  format: Format,
): MessageShape<Desc> {
  if (format === 'json') return toMessage(desc, parseJsonBody(bytes))
  try {
    return fromBinary(desc, bytes, { readUnknownFields: false })
  } catch (error) {
    throw contentError('the body is not a readable protobuf message', error)
  }
}

/** A message from a JSON value. */
export function toMessage<Desc extends DescMessage>(desc: Desc, json: unknown): MessageShape<Desc> {
  try {
    return fromJson(desc, json as JsonValue)
  } catch (error) {
    // The library names the field and what it found there, never more of the body than that.
    const why = error instanceof Error ? error.message : String(error)
    throw contentError(`the JSON body is not as expected: ${why.slice(0, 300)}`, error)
  }
}

/** The value of a JSON body. */
export function parseJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw contentError('the JSON body is empty')
  try {
    return JSON.parse(decodeUtf8(bytes))
  } catch (error) {
    // The parser's own sentence quotes the body, so it stays in the log.
    throw contentError('the body is not readable JSON', error)
  }
}

function decodeUtf8(bytes: Buffer): string {
  if (isAscii(bytes)) return bytes.toString('latin1')
  if (!isUtf8(bytes)) throw new Error('not UTF-8')
  return bytes.toString('utf8')
}

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
import type { BodyReader } from '../../http/bodies/body-reader.ts'
import { decodeBase64 } from '../../http/wire/base64.ts'
import type { Part } from '../../http/wire/json-parts.ts'
import { createContentError } from './fault.ts'
import type { Format } from './format.ts'

/** Reads one type of body. */
export interface Reader<T> {
  /**
   * Throws CONTENT_UNREADABLE. Byte fields of the result are views of `bytes`. A promise: the body is read in
   * parts.
   */
  read(bytes: Buffer, format: Format): T | Promise<T>
  /** Converts a large JSON body to protobuf, on the body thread. */
  toProtobuf?: BodyReader<Uint8Array>
}

/** Writes one type of body. */
export interface Writer<T> {
  /** A large body is written in parts, when they are sent. */
  write(value: T, format: Format): string | Uint8Array | Iterable<Part>
}

/** Reads at once. */
export interface Codec<T> extends Writer<T> {
  read(bytes: Buffer, format: Format): T
  write(value: T, format: Format): string | Uint8Array
}

/** Creates a codec that reads and writes messages with their descriptor. */
export function createCodec<Desc extends DescMessage>(
  desc: Desc,
): Codec<MessageShape<Desc>> & { desc: Desc } {
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
    throw createContentError('the body is not a valid protobuf message', error)
  }
}

export function toMessage<Desc extends DescMessage>(desc: Desc, json: unknown): MessageShape<Desc> {
  try {
    return fromJson(desc, json as JsonValue)
  } catch (error) {
    // The library's message names the field and its value, and quotes nothing else of the body.
    const why = error instanceof Error ? error.message : String(error)
    throw createContentError(`the JSON body does not match the message: ${why.slice(0, 300)}`, error)
  }
}

/**
 * Refuses items whose byte field is not base64. The library skips white space and reads "hello world" as
 * seven bytes.
 */
export function checkBase64(json: unknown, field: string): void {
  const items = (json as { items?: unknown } | null)?.items
  if (!Array.isArray(items)) return
  for (const [index, item] of items.entries()) {
    const value = (item as Record<string, unknown> | null)?.[field]
    if (typeof value === 'string' && decodeBase64(value) === undefined) {
      throw createContentError(
        `the JSON body does not match the message: items[${index}].${field} is not base64`,
      )
    }
  }
}

export function parseJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw createContentError('the JSON body is empty')
  try {
    return JSON.parse(decodeUtf8(bytes))
  } catch (error) {
    // The parser's message quotes the body, so only the log has it.
    throw createContentError('the body is not valid JSON', error)
  }
}

function decodeUtf8(bytes: Buffer): string {
  if (isAscii(bytes)) return bytes.toString('latin1')
  if (!isUtf8(bytes)) throw new Error('not UTF-8')
  return bytes.toString('utf8')
}

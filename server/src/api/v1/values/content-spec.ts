/**
 * Bytes in requests: an object with exactly one of `text`, `json` and `base64`. Payloads accept all three,
 * message keys and headers accept `text` and `base64`.
 */
import { Buffer } from 'node:buffer'
import { type Static, Type } from 'typebox'
import { type Header, measureMetadata, metadataBytesMax, payloadBytesMax } from '../../../core/items/item.ts'
import { component, describedWith, exactlyOneOf } from '../../http/openapi/annotations.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { repairedWhenRead, storedAsBytes } from '../../http/validation/unstorable-text.ts'
import { decodeBase64 } from '../../http/wire/base64.ts'

const keyLengthMax = 10_000
const headerLengthMax = 100_000

const asText = (lengths: Readonly<{ maxLength?: number }> = {}) =>
  Type.Optional(Type.String({ ...storedAsBytes, ...lengths, description: 'The bytes as UTF-8 text.' }))
const asBase64 = (lengths: Readonly<{ maxLength?: number }> = {}) =>
  Type.Optional(
    describedWith(
      { contentEncoding: 'base64' },
      Type.String({ ...lengths, description: 'The bytes in base64.' }),
    ),
  )
/** Base64 needs 4 characters for 3 bytes. */
const toBase64Length = (bytes: number) => Math.ceil(bytes / 3) * 4

export function payloadSpec(description: string) {
  return component(
    'PayloadSpec',
    exactlyOneOf(
      ['text', 'json', 'base64'],
      Type.Object(
        {
          text: asText(),
          json: Type.Optional(
            Type.Unknown({
              ...repairedWhenRead,
              description:
                'Any JSON value. The payload is its text, exactly as it is written in the request.',
            }),
          ),
          base64: asBase64(),
        },
        { additionalProperties: false, description: `${description} Exactly one of text, json and base64.` },
      ),
    ),
  )
}

export function keySpec(description: string) {
  return component(
    'MessageKeySpec',
    exactlyOneOf(
      ['text', 'base64'],
      Type.Object(
        {
          text: asText({ maxLength: keyLengthMax }),
          base64: asBase64({ maxLength: toBase64Length(keyLengthMax) }),
        },
        { additionalProperties: false, description: `${description} Exactly one of text and base64.` },
      ),
    ),
  )
}

export const HeaderSpec = component(
  'MessageHeaderSpec',
  Type.Object(
    {
      name: Type.String({ minLength: 1, maxLength: 1_000, description: 'Name of the header.' }),
      text: asText({ maxLength: headerLengthMax }),
      base64: asBase64({ maxLength: toBase64Length(headerLengthMax) }),
    },
    {
      additionalProperties: false,
      description: 'One of text and base64, or neither for a header without a value.',
    },
  ),
)

type ContentSpec = Readonly<{ text?: string; json?: unknown; base64?: string }>

/**
 * Reads a payload. `field` is its path for error messages. `readJsonText` returns the text of
 * `json` as the request has it, because the parsed value has lost digits of large numbers and repeated names.
 */
export function readContent(field: string, content: ContentSpec, readJsonText: () => string): Uint8Array {
  const bytes = readOptionalContent(field, content, readJsonText)
  if (bytes === null) throw new InvalidRequest([{ field, message: 'is empty; give text, json or base64' }])
  checkPayloadBytes(field, bytes)
  return bytes
}

export function checkPayloadBytes(field: string, { byteLength }: Uint8Array): void {
  if (byteLength <= payloadBytesMax) return
  const message = `has ${byteLength} bytes; at most ${payloadBytesMax} are allowed`
  throw new InvalidRequest([{ field, message }])
}

/** Checks the size of a key and headers together. `field` is the path of the item for error messages. */
export function checkMetadataBytes(field: string, key: Uint8Array | null, headers: readonly Header[]): void {
  const bytes = measureMetadata(key, headers)
  if (bytes <= metadataBytesMax) return
  const message = `has ${bytes} bytes of key and headers; at most ${metadataBytesMax} are allowed`
  throw new InvalidRequest([{ field, message }])
}

/** The headers of all items of a request. The server's thread receives and stores each of them. */
const headersPerRequestMax = 10_000

export function checkHeaderCount(
  field: string,
  items: readonly Readonly<{ headers?: readonly Header[] }>[],
): void {
  const count = items.reduce((sum, { headers = [] }) => sum + headers.length, 0)
  if (count <= headersPerRequestMax) return
  const message = `has ${count} headers together; at most ${headersPerRequestMax} are allowed`
  throw new InvalidRequest([{ field, message }])
}

/** Reads a message key, which has no `json`. */
export function readKey(field: string, key: Pick<ContentSpec, 'text' | 'base64'>): Uint8Array {
  const bytes = readOptionalContent(field, key)
  if (bytes !== null) return bytes
  throw new InvalidRequest([{ field, message: 'is empty; give text or base64' }])
}

/** Reads headers. `field` is the path of the list for error messages. */
export function readHeaders(field: string, headers: readonly Static<typeof HeaderSpec>[]): Header[] {
  return headers.map(
    ({ name, ...value }, index) => [name, readOptionalContent(`${field}[${index}]`, value)] as const,
  )
}

/** Returns null if no field is given. */
function readOptionalContent(
  field: string,
  content: ContentSpec,
  readJsonText: () => string = () => '',
): Uint8Array | null {
  const given = (['text', 'json', 'base64'] as const).filter((form) => content[form] !== undefined)
  if (given.length > 1) {
    throw new InvalidRequest([{ field, message: `has ${given.join(' and ')}; give one of them` }])
  }
  const { text, base64 } = content
  if (text !== undefined) return Buffer.from(text)
  if (base64 !== undefined) return parseBase64(`${field}.base64`, base64)
  return given.length === 0 ? null : Buffer.from(readJsonText())
}

function parseBase64(field: string, text: string): Uint8Array {
  const bytes = decodeBase64(text)
  if (bytes === undefined) throw new InvalidRequest([{ field, message: 'is not base64' }])
  return bytes
}

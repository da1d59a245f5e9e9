/** Reads the parts of an envelope that are kept byte for byte: value, key and headers. */
import type { Header } from '../../core/items/item.ts'
import { splitElements, splitFields } from '../../core/text/json-text.ts'
import { cleanText, describeKind, isObject, oddCharacters, type Problems } from './fields.ts'

const headersMax = 1_000
const headerNameMax = 512

/** A value and the JSON text that it was parsed from. */
export type Written = Readonly<{ value: unknown; text: string }>

type Reading = Readonly<{
  name: string
  encoding?: unknown
  problems: Problems
  /**
   * True: replace an unpaired surrogate, which has no UTF-8 encoding; false: report the text as unreadable.
   */
  isReplaced: boolean
}>

/**
 * Text becomes its UTF-8 bytes, or is decoded by the given encoding. `{"base64": "…"}` and `{"text": "…"}`
 * name their encoding. Any other JSON value becomes its JSON text, exactly as it was written.
 */
export function readBytes({ value, text }: Written, reading: Reading): Uint8Array | null {
  const { name, encoding, problems } = reading
  if (value === undefined || value === null) return null
  if (isObject(value) && typeof value.base64 === 'string' && Object.keys(value).length === 1)
    return readBase64(value.base64, name, problems)
  if (isObject(value) && typeof value.text === 'string' && Object.keys(value).length === 1)
    return readText(value.text, reading)
  if (encoding === 'base64') {
    if (typeof value === 'string') return readBase64(value, name, problems)
    problems.noteUnread(`${name} is ${describeKind(value)}, not base64`)
    return null
  }
  if (encoding !== undefined && encoding !== null && encoding !== 'text' && encoding !== 'json') {
    problems.noteUnread(`${name}_encoding is not text, json or base64`)
    return null
  }
  return typeof value === 'string' && encoding !== 'json' ? readText(value, reading) : encodeText(text)
}

function readText(text: string, { name, problems, isReplaced }: Reading): Uint8Array | null {
  if (text.isWellFormed()) return encodeText(text)
  if (isReplaced) {
    problems.noteChanged(`${name} has an unpaired surrogate, kept as U+FFFD`)
    return encodeText(text)
  }
  problems.noteUnread(`${name} has an unpaired surrogate, which has no UTF-8 encoding`)
  return null
}

function readBase64(text: string, name: string, problems: Problems): Uint8Array | null {
  const plain = text.replaceAll(/\s/g, '')
  const isBase64 = /^[A-Za-z0-9+/_-]*={0,2}$/.test(plain) && plain.replaceAll('=', '').length % 4 !== 1
  if (isBase64) return new Uint8Array(Buffer.from(plain, 'base64'))
  problems.noteUnread(`${name} is not base64`)
  return null
}

type Pair = readonly [name: string, held: Written]

/** Accepts an object, or a list of `{name|key, value}` or `[name, value]`. Keeps order and repeated names. */
export function readHeaders({ value, text }: Written, problems: Problems): readonly Header[] {
  if (value === undefined || value === null) return []
  if (typeof value !== 'object') {
    problems.noteUnread(`headers are ${describeKind(value)}, not an object or a list`)
    return []
  }
  const pairs = Array.isArray(value)
    ? splitElements(text).map((entry) => toHeaderPair(parseWritten(entry)))
    : splitFields(text).map(([name, held]): Pair => [name, parseWritten(held)])
  if (pairs.length > headersMax) {
    problems.noteUnread(`there are ${pairs.length} headers, more than ${headersMax}`)
    return []
  }
  return pairs.flatMap((pair): readonly Header[] => {
    if (pair === undefined) {
      problems.noteUnread('a header has no name')
      return []
    }
    const [name, held] = pair
    if (!Array.isArray(held.value)) return [toHeader(name, held, problems)]
    return splitElements(held.text).map((one) => toHeader(name, parseWritten(one), problems))
  })
}

function parseWritten(text: string): Written {
  return { value: JSON.parse(text), text }
}

const nothing: Written = { value: null, text: 'null' }

function toHeaderPair({ value, text }: Written): Pair | undefined {
  if (Array.isArray(value)) {
    const [, held] = splitElements(text)
    return typeof value[0] === 'string'
      ? [value[0], held === undefined ? nothing : parseWritten(held)]
      : undefined
  }
  if (!isObject(value)) return undefined
  const name = value.name ?? value.key
  const held = new Map(splitFields(text)).get('value')
  return typeof name === 'string' ? [name, held === undefined ? nothing : parseWritten(held)] : undefined
}

function toHeader(name: string, held: Written, problems: Problems): Header {
  const kept = cleanText(name, headerNameMax)
  if (kept !== name) {
    const why =
      name.length > headerNameMax
        ? `${name.length} characters, of which ${headerNameMax} are kept`
        : `${oddCharacters}, kept as U+FFFD`
    problems.noteChanged(`the name of header ${kept.slice(0, 50)} has ${why}`)
  }
  return [kept, readBytes(held, { name: `header ${kept.slice(0, 50)}`, problems, isReplaced: true })]
}

export function encodeText(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

/** Reads single fields of an envelope. A field that cannot be read is a problem; a missing field is not. */
import { createHash } from 'node:crypto'
import { splitFields } from '../../core/text/json-text.ts'
import { cutText, isStorableText, toStorableText } from '../../core/text/storable-text.ts'
import { type Instant, usPerMs } from '../../core/time/instant.ts'
import { parseIsoInstant } from '../../core/time/iso-time.ts'

export type Json = Readonly<Record<string, unknown>>

/** Collects the problems of an envelope, one sentence each. */
export class Problems {
  readonly all: string[] = []
  #isUnread = false
  #isChanged = false

  /** True if a part of the envelope could not be read. */
  get isUnread(): boolean {
    return this.#isUnread
  }

  /** True if the letter differs from the envelope, so the original text must be stored with the letter. */
  get isChanged(): boolean {
    return this.#isChanged
  }

  /** The value cannot be read and is not part of the letter. */
  noteUnread(problem: string): void {
    this.#isUnread = true
    this.noteChanged(problem)
  }

  /** The value is part of the letter, but was changed so that it can be stored. */
  noteChanged(problem: string): void {
    this.#isChanged = true
    this.cut(problem)
  }

  /** The value was truncated. Only reported: a text this long is not stored a second time. */
  cut(problem: string): void {
    // A long history may have the same problem a hundred times.
    if (!this.all.includes(problem)) this.all.push(problem)
  }
}

export class Fields {
  readonly #json: Json
  readonly #text: string
  readonly #problems: Problems
  #texts: ReadonlyMap<string, string> | undefined

  /** `text`: what `json` was parsed from. */
  constructor(json: Json, text: string, problems: Problems) {
    this.#json = json
    this.#text = text
    this.#problems = problems
  }

  /** The JSON text of a field. If the field is repeated, the last one counts, as in JSON.parse. */
  readWritten(name: string): string {
    this.#texts ??= new Map(splitFields(this.#text))
    return this.#texts.get(name) ?? 'null'
  }

  /** A text for people: truncated if it is too long. */
  readText(name: string, lengthMax: number): string | undefined {
    return this.#cut(name, lengthMax, (problem) => this.#problems.noteChanged(problem))
  }

  /** Like `text`, for texts that may be very long. */
  readLongText(name: string, lengthMax: number): string | undefined {
    return this.#cut(name, lengthMax, (problem) => this.#problems.cut(problem))
  }

  #cut(name: string, lengthMax: number, report: (problem: string) => void): string | undefined {
    const value = this.#given(name)
    if (value === undefined) return undefined
    if (!isStorableText(value)) this.#problems.noteChanged(`${name} has ${oddCharacters}, kept as U+FFFD`)
    if (value.length > lengthMax)
      report(`${name} has ${value.length} characters: the first ${lengthMax} are kept`)
    return cleanText(value, lengthMax)
  }

  /** A text for machines: two different texts stay different, however long they are. */
  name(name: string, lengthMax: number): string | undefined {
    const value = this.#given(name)
    return value === undefined ? undefined : keepDistinct(value, lengthMax, name, this.#problems)
  }

  #given(name: string): string | undefined {
    const value = this.#json[name]
    if (value === undefined || value === null) return undefined
    if (typeof value === 'string') return value
    // Use the JSON text: a parsed large number loses its last digits.
    if (typeof value === 'number' || typeof value === 'boolean') return this.readWritten(name)
    this.#problems.noteUnread(`${name} is ${describeKind(value)}, not a text`)
    return undefined
  }

  count(name: string): number | undefined {
    const value = this.#json[name]
    if (value === undefined || value === null) return undefined
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= int4Max)
      return number
    this.#problems.noteUnread(`${name} is not an integer from 0 to ${int4Max}`)
    return undefined
  }

  readTime(name: string): Instant | undefined {
    const value = this.#json[name]
    if (value === undefined || value === null) return undefined
    const instant = readTime(value)
    if (instant === undefined)
      this.#problems.noteUnread(
        `${name} is not a time in RFC 3339 or milliseconds since 1970, up to the year 2254`,
      )
    return instant
  }

  readObject(name: string): Fields {
    const value = this.#json[name]
    if (isObject(value)) return new Fields(value, this.readWritten(name), this.#problems)
    if (typeof value === 'string') return new Fields({ message: value }, '{}', this.#problems)
    if (value !== undefined && value !== null)
      this.#problems.noteUnread(`${name} is ${describeKind(value)}, not an object`)
    return new Fields({}, '{}', this.#problems)
  }
}

const digestLength = '~sha256:'.length + 64

/** Returns a text that can be stored: if it is too long, its beginning and a digest of the whole text. */
export function keepDistinct(text: string, lengthMax: number, name: string, problems: Problems): string {
  const isTooLong = text.length > lengthMax
  if (!isTooLong && isStorableText(text)) return text
  const why = isTooLong ? `${text.length} characters, more than ${lengthMax}` : oddCharacters
  problems.noteChanged(`${name} has ${why}: kept as its beginning and a digest`)
  const digest = createHash('sha256').update(text, 'utf16le').digest('hex')
  return `${cleanText(text, lengthMax - digestLength)}~sha256:${digest}`
}

const int4Max = 2 ** 31 - 1
const yearMs = 366 * 24 * 3_600_000
const timeMsMax = 285 * yearMs

function readTime(value: unknown): Instant | undefined {
  if (typeof value === 'number') return isTimeMs(value) ? Math.round(value * usPerMs) : undefined
  if (typeof value !== 'string' || value.length > 64) return undefined
  const text = value.trim()
  if (/^-?[0-9]{9,15}$/.test(text)) return isTimeMs(Number(text)) ? Number(text) * usPerMs : undefined
  // A date without a time of day is not accepted as a time of failure.
  const instant = text.includes(':') ? parseIsoInstant(text) : undefined
  return instant !== undefined && isTimeMs(instant / usPerMs) ? instant : undefined
}

function isTimeMs(ms: number): boolean {
  return Number.isFinite(ms) && Math.abs(ms) < timeMsMax
}

export const oddCharacters = 'a NUL character or an unpaired surrogate'

/** The nearest text that every store can keep, with U+FFFD for NUL characters and unpaired surrogates. */
export function cleanText(text: string, lengthMax: number): string {
  return toStorableText(cutText(text, lengthMax), '\ufffd')
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function describeKind(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return (
    { object: 'an object', string: 'a text', number: 'a number', boolean: 'a boolean' }[
      typeof value as string
    ] ?? 'nothing'
  )
}

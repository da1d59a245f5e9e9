/** Single fields of an envelope. What is there and cannot be read is a problem, what is absent is not. */
import { createHash } from 'node:crypto'
import { cutText } from '../../core/failure-bounds.ts'
import { type Instant, usPerMs } from '../../core/instant.ts'
import { isoInstant } from '../../core/iso-time.ts'
import { fieldTexts } from '../../core/json-text.ts'

export type Json = Readonly<Record<string, unknown>>

/** What was wrong with an envelope, a sentence each. */
export class Problems {
  readonly all: string[] = []
  #isUnread = false
  #isChanged = false

  /** Something could not be read. */
  get isUnread(): boolean {
    return this.#isUnread
  }

  /** What was sent is to be kept beside what was made of it. */
  get isChanged(): boolean {
    return this.#isChanged
  }

  /** Nothing can be made of it: it is not in the letter. */
  unread(problem: string): void {
    this.#isUnread = true
    this.mended(problem)
  }

  /** It is in the letter, but not just as it was sent. */
  mended(problem: string): void {
    this.#isChanged = true
    this.cut(problem)
  }

  /** Its end is not in the letter, which is said and no more: so long a text is not kept twice. */
  cut(problem: string): void {
    // A long history may have the same wrong a hundred times.
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

  /** A field as it is written. Of a repeated one the last, like its value. */
  written(name: string): string {
    this.#texts ??= new Map(fieldTexts(this.#text))
    return this.#texts.get(name) ?? 'null'
  }

  /** For people: what is too long is cut. */
  text(name: string, lengthMax: number): string | undefined {
    return this.#cut(name, lengthMax, (problem) => this.#problems.mended(problem))
  }

  /** The same of what may be very long. */
  longText(name: string, lengthMax: number): string | undefined {
    return this.#cut(name, lengthMax, (problem) => this.#problems.cut(problem))
  }

  #cut(name: string, lengthMax: number, tell: (problem: string) => void): string | undefined {
    const value = this.#given(name)
    if (value === undefined) return undefined
    if (!isKeepable(value)) this.#problems.mended(`${name} has ${oddCharacters}, kept as U+FFFD`)
    if (value.length > lengthMax)
      tell(`${name} has ${value.length} characters: the first ${lengthMax} are kept`)
    return cleanText(value, lengthMax)
  }

  /** For machines: two that differ stay different, however long they are. */
  name(name: string, lengthMax: number): string | undefined {
    const value = this.#given(name)
    return value === undefined ? undefined : distinctText(value, lengthMax, name, this.#problems)
  }

  #given(name: string): string | undefined {
    const value = this.#json[name]
    if (value === undefined || value === null) return undefined
    if (typeof value === 'string') return value
    // As it is written: large numbers lose their last digits when they are parsed.
    if (typeof value === 'number' || typeof value === 'boolean') return this.written(name)
    this.#problems.unread(`${name} is ${kindOf(value)}, not a text`)
    return undefined
  }

  count(name: string): number | undefined {
    const value = this.#json[name]
    if (value === undefined || value === null) return undefined
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= int4Max)
      return number
    this.#problems.unread(`${name} is not a whole number from 0 to ${int4Max}`)
    return undefined
  }

  time(name: string): Instant | undefined {
    const value = this.#json[name]
    if (value === undefined || value === null) return undefined
    const instant = readTime(value)
    if (instant === undefined)
      this.#problems.unread(
        `${name} is not a time in RFC 3339 or milliseconds since 1970, up to the year 2254`,
      )
    return instant
  }

  object(name: string): Fields {
    const value = this.#json[name]
    if (isObject(value)) return new Fields(value, this.written(name), this.#problems)
    if (typeof value === 'string') return new Fields({ message: value }, '{}', this.#problems)
    if (value !== undefined && value !== null)
      this.#problems.unread(`${name} is ${kindOf(value)}, not an object`)
    return new Fields({}, '{}', this.#problems)
  }
}

const digestLength = '~sha256:'.length + 64

/** A text that cannot be kept whole is its beginning and a digest of all of it. */
export function distinctText(text: string, lengthMax: number, name: string, problems: Problems): string {
  const isTooLong = text.length > lengthMax
  if (!isTooLong && isKeepable(text)) return text
  const why = isTooLong ? `${text.length} characters, more than ${lengthMax}` : oddCharacters
  problems.mended(`${name} has ${why}: kept as its beginning and a digest`)
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
  // A day alone is no time at which something failed.
  const instant = text.includes(':') ? isoInstant(text) : undefined
  return instant !== undefined && isTimeMs(instant / usPerMs) ? instant : undefined
}

function isTimeMs(ms: number): boolean {
  return Number.isFinite(ms) && Math.abs(ms) < timeMsMax
}

export const oddCharacters = 'a NUL character or half of a character pair'

function isKeepable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

/** As both stores can keep it: no NUL, no half of a character pair. */
export function cleanText(text: string, lengthMax: number): string {
  return cutText(text, lengthMax).replaceAll('\u0000', '\ufffd').toWellFormed()
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return (
    { object: 'an object', string: 'a text', number: 'a number', boolean: 'a boolean' }[
      typeof value as string
    ] ?? 'nothing'
  )
}

/**
 * The redaction rules of a queue: parts of messages and error texts that only callers with the permission
 * `payload.read` see. `createRedaction` is the one function that applies them; its result is for the readers
 * of one queue.
 *
 * Everything that cannot be examined is hidden as a whole: a payload that is long, cut, not text or, for a
 * path, not JSON. Patterns have the syntax of RE2, so their time is linear in the text, and the text is
 * bounded.
 */
import { RE2JS } from 're2js'
import type { Failure, Header, Item } from '../items/item.ts'
import { isSecretHeader, redactContent, redactedBytes, redactedText } from './redaction.ts'

/** A step of a path; null: every element of a list, or every field of an object. */
export type RedactedPath = readonly (string | number | null)[]

/**
 * `header`: the values of headers with this name, in any case. `path`: values in JSON payloads. `pattern`:
 * matches in payloads, keys, header values and error texts.
 */
export type RedactionRule = Readonly<{ header: string } | { path: RedactedPath } | { pattern: string }>

/** `isContentShown`: payload and key are shown without the parts that the rules name. */
export type RedactionPolicy = Readonly<{ rules: readonly RedactionRule[]; isContentShown: boolean }>

export const redactionBounds = {
  rulesMax: 50,
  patternMax: 500,
  /** Instructions of all patterns of a queue. */
  sizeMax: 1_000,
  /** Longer payloads, keys and header values are hidden as a whole, and longer texts are cut there. */
  textMax: 2 ** 15,
  /** Messages and stack traces of the earlier failures of an item, together; the rest is hidden. */
  historyTextMax: 2 ** 17,
} as const

/** Longer matches are shown in part if they cross the end of the examined text. */
const cutMatchMax = 1_000
const hidden = { message: redactedText, stack: redactedText } as const

export interface Redaction {
  /** Whether rules change error texts. */
  readonly hasPatterns: boolean
  /** An error message, a stack trace, a title, or another text about an item. */
  text(text: string): string
  failure(failure: Failure): Failure
  /** `isCut`: only the beginning of the payload was read. */
  payload(payload: Uint8Array, isCut: boolean): Uint8Array
  header(header: Header): Header
  item<I extends Item & Readonly<{ payloadBytes?: number }>>(item: I): I
  content<C extends RedactedContent>(content: C): C
}

/** The bytes of a letter, or of an edited version of it. */
export type RedactedContent = Readonly<{
  payload: Uint8Array
  payloadBytes?: number
  key: Uint8Array | null
  headers: readonly Header[]
}>

/** Undefined: the queue has no rules, and payload, key and secret headers are hidden. */
export function createRedaction(policy: RedactionPolicy | undefined): Redaction {
  if (policy === undefined) return withoutRules
  const known = created.get(policy)
  if (known !== undefined) return known
  const redaction = new RuledRedaction(policy)
  created.set(policy, redaction)
  return redaction
}

/** An error text for callers without the permission `payload.read`, and for receivers outside of Redrive. */
export function redactText(policy: RedactionPolicy | undefined, text: string): string {
  return createRedaction(policy).text(text)
}

/** A whole payload, as callers without the permission `payload.read` see it. */
export function redactPayload(policy: RedactionPolicy | undefined, payload: Uint8Array): Uint8Array {
  return createRedaction(policy).payload(payload, false)
}

const created = new WeakMap<RedactionPolicy, Redaction>()

class RuledRedaction implements Redaction {
  readonly hasPatterns: boolean
  readonly #isContentShown: boolean
  readonly #patterns: readonly RE2JS[]
  readonly #paths: readonly RedactedPath[]
  readonly #headers: ReadonlySet<string>

  constructor({ rules, isContentShown }: RedactionPolicy) {
    this.#isContentShown = isContentShown
    this.#patterns = rules.flatMap((rule) => ('pattern' in rule ? [RE2JS.compile(rule.pattern)] : []))
    this.#paths = rules.flatMap((rule) => ('path' in rule ? [rule.path] : []))
    this.#headers = new Set(rules.flatMap((rule) => ('header' in rule ? [rule.header.toLowerCase()] : [])))
    this.hasPatterns = this.#patterns.length > 0
  }

  text(text: string): string {
    if (!this.hasPatterns || text === '') return text
    const { textMax } = redactionBounds
    if (text.length <= textMax) return this.#replace(text)
    // A match that the end of the examined part cuts is not found, so the last characters are hidden, too.
    return this.#replace(text.slice(0, textMax)).slice(0, -cutMatchMax) + redactedText
  }

  failure(failure: Failure): Failure {
    if (!this.hasPatterns) return failure
    const { errorClass, message, stack, fingerprint } = failure
    return {
      ...failure,
      errorClass: this.text(errorClass),
      message: this.text(message),
      stack: this.text(stack),
      ...(fingerprint !== undefined && { fingerprint: this.text(fingerprint) }),
    }
  }

  payload(payload: Uint8Array, isCut: boolean): Uint8Array {
    if (payload.byteLength === 0) return payload
    const isExamined = !isCut && payload.byteLength <= redactionBounds.textMax
    const text = this.#isContentShown && isExamined ? decode(payload) : undefined
    if (text === undefined) return redactedBytes
    const shown = this.#hidePaths(text)
    return shown === undefined ? redactedBytes : encoder.encode(this.#replace(shown))
  }

  header([name, value]: Header): Header {
    if (value === null || value.byteLength === 0) return [name, value]
    if (isSecretHeader(name) || this.#headers.has(name.toLowerCase())) return [name, redactedBytes]
    return [name, this.#hideBytes(value)]
  }

  content<C extends RedactedContent>(content: C): C {
    const { payload, key, headers } = content
    const size = content.payloadBytes ?? payload.byteLength
    return {
      ...content,
      payload: this.payload(payload, size > payload.byteLength),
      ...(size > 0 && { payloadBytes: size }),
      key: this.#hideKey(key),
      headers: headers.map((header) => this.header(header)),
    }
  }

  item<I extends Item & Readonly<{ payloadBytes?: number }>>(item: I): I {
    const { failure, history, reference } = item
    let left: number = redactionBounds.historyTextMax
    const hide = (each: Failure): Failure => {
      left -= each.message.length + each.stack.length
      return left >= 0
        ? this.failure(each)
        : { ...this.failure({ ...each, message: '', stack: '' }), ...hidden }
    }
    return {
      ...this.content(item),
      reference: this.text(reference),
      failure: failure === null ? null : this.failure(failure),
      history: this.hasPatterns ? history.map(hide) : history,
    }
  }

  #hideKey(key: Uint8Array | null): Uint8Array | null {
    if (key === null || key.byteLength === 0) return key
    return this.#isContentShown ? this.#hideBytes(key) : redactedBytes
  }

  #hideBytes(bytes: Uint8Array): Uint8Array {
    if (!this.hasPatterns) return bytes
    const text = bytes.byteLength > redactionBounds.textMax ? undefined : decode(bytes)
    return text === undefined ? redactedBytes : encoder.encode(this.#replace(text))
  }

  /**
   * Undefined: there are paths, and the text is not JSON. JSON is written again, so that an escaped character
   * or a repeated name hides nothing from the patterns.
   */
  #hidePaths(text: string): string | undefined {
    let json: unknown
    try {
      json = JSON.parse(text)
    } catch {
      return this.#paths.length === 0 ? text : undefined
    }
    for (const path of this.#paths) json = hideAt(json, path, 0)
    try {
      return JSON.stringify(json)
    } catch {
      // Nested too deeply to be written.
      return undefined
    }
  }

  #replace(given: string): string {
    return this.#patterns.reduce((text, pattern) => replaceMatches(text, pattern), given)
  }
}

const withoutRules: Redaction = {
  hasPatterns: false,
  text: (text) => text,
  failure: (failure) => failure,
  payload: (payload) => (payload.byteLength === 0 ? payload : redactedBytes),
  header: ([name, value]) => [name, value === null || !isSecretHeader(name) ? value : redactedBytes],
  item: redactContent,
  content: redactContent,
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decode(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** The value with `[redacted]` at the path. Changes the value, which was parsed for this purpose. */
function hideAt(value: unknown, path: RedactedPath, depth: number): unknown {
  const step = path[depth]
  if (step === undefined) return redactedText
  if (value === null || typeof value !== 'object') return value
  const fields = value as Record<string | number, unknown>
  const names = step === null ? Object.keys(fields) : [step]
  for (const name of names) {
    if (typeof name === 'number' && !Array.isArray(value)) continue
    if (!Object.hasOwn(fields, name)) continue
    const hidden = hideAt(fields[name], path, depth + 1)
    // An assignment to `__proto__` would not replace the field.
    Object.defineProperty(fields, name, {
      value: hidden,
      enumerable: true,
      writable: true,
      configurable: true,
    })
  }
  return value
}

/** The first group of the pattern is hidden, or else the whole match. */
function replaceMatches(text: string, pattern: RE2JS): string {
  const matcher = pattern.matcher(text)
  let shown = ''
  let end = 0
  while (matcher.find()) {
    const group = matcher.groupCount() > 0 && matcher.start(1) >= 0 ? 1 : 0
    if (matcher.end(group) === matcher.start(group)) continue
    shown += text.slice(end, matcher.start(group)) + redactedText
    end = matcher.end(group)
  }
  return end === 0 ? text : shown + text.slice(end)
}

/** A sentence about the first problem; undefined: the rules are valid. */
export function findRedactionProblem(rules: readonly RedactionRule[]): string | undefined {
  const { rulesMax, patternMax, sizeMax } = redactionBounds
  if (rules.length > rulesMax) return `there are ${rules.length} rules; the limit is ${rulesMax}`
  let size = 0
  for (const rule of rules) {
    if (!('pattern' in rule)) continue
    const { pattern } = rule
    if (pattern.length > patternMax)
      return `a pattern has ${pattern.length} characters; the limit is ${patternMax}`
    try {
      const compiled = RE2JS.compile(pattern)
      if (compiled.matches('')) return `the pattern ${pattern} matches an empty text`
      size += compiled.programSize()
    } catch (error) {
      return `the pattern ${pattern} is not valid RE2: ${error instanceof Error ? error.message : String(error)}`
    }
  }
  return size <= sizeMax
    ? undefined
    : `the patterns have ${size} instructions together; the limit is ${sizeMax}`
}

import type { JsonNumber } from '../../../core/text/json-number.ts'
import { isStorableText } from '../../../core/text/storable-text.ts'

/**
 * The JSON path of filters: `$.order.lines[0]["unit price"]` is `$` followed by names and indexes. Without
 * wildcards, slices and expressions, so that a payload needs to be read only once.
 */
export type JsonPath = readonly (string | number)[]
export type JsonTest = Readonly<{ path: JsonPath; value: string | boolean | null | JsonNumber }>

/** `problem` is a sentence without its subject, which names the position. */
export type InvalidPath = Readonly<{ problem: string }>

const depthMax = 32
const name = /[\p{L}\p{N}_$-]+/uy
const index = /\[(\d{1,9})\]/y
// Each character matches in one way only, so the time is linear in the length of the text.
const quoted = /\[("(?:[^"\\]|\\.)*")\]/y

/**
 * Parses `<path>=<value>`. A number, true, false, null or quoted text is JSON; any other value is plain text.
 */
export function parseJsonTest(text: string): JsonTest | InvalidPath {
  const read = readPath(text)
  if ('problem' in read) return read
  const { path, end } = read
  if (path.length === 0) return { problem: 'names no field: write .name, [0] or ["name"] after $' }
  if (text[end] !== '=') {
    return end === text.length
      ? { problem: 'has no value: write <path>=<value>' }
      : createUnexpectedError(text, end, '.name, [0], ["name"] or =value')
  }
  return readValue(path, text.slice(end + 1))
}

/** Parses a path in which `.*` and `[*]` stand for every field and every element: null. */
export function parseWildcardPath(
  text: string,
): Readonly<{ path: readonly (string | number | null)[] }> | InvalidPath {
  const steps: (string | number | null)[] = []
  const parts = text.split(wildcard)
  for (const [index, part] of parts.entries()) {
    const read = part === '' && index > 0 ? { path: [] } : readWhole(index === 0 ? part : `$${part}`)
    if ('problem' in read) return read
    steps.push(...read.path, ...(index < parts.length - 1 ? [null] : []))
  }
  if (steps.length === 0) return { problem: 'names no field: write .name, [0], ["name"] or [*] after $' }
  return steps.length <= depthMax ? { path: steps } : { problem: `has more than ${depthMax} steps` }
}

// Names in quotes that contain a wildcard are cut here, and then refused as unreadable.
const wildcard = /\.\*|\[\*\]/

/** Parses a path without a value. */
export function parseJsonPath(text: string): Readonly<{ path: JsonPath }> | InvalidPath {
  const read = readWhole(text)
  if ('path' in read && read.path.length === 0)
    return { problem: 'names no field: write .name, [0] or ["name"] after $' }
  return read
}

function readWhole(text: string): Readonly<{ path: JsonPath }> | InvalidPath {
  const read = readPath(text)
  if ('problem' in read) return read
  return read.end === text.length
    ? { path: read.path }
    : createUnexpectedError(text, read.end, '.name, [0] or ["name"]')
}

function readPath(text: string): Readonly<{ path: JsonPath; end: number }> | InvalidPath {
  if (!text.startsWith('$')) return createUnexpectedError(text, 0, '$ at the start')
  const path: (string | number)[] = []
  let end = 1
  while (end < text.length && text[end] !== '=') {
    const step = readStep(text, end)
    if ('problem' in step) return step
    path.push(step.value)
    if (path.length > depthMax) return { problem: `has more than ${depthMax} steps` }
    end = step.end
  }
  return { path, end }
}

function readStep(text: string, at: number): Readonly<{ value: string | number; end: number }> | InvalidPath {
  if (text[at] === '.') {
    const found = matchAt(name, text, at + 1)
    if (found === null) return createUnexpectedError(text, at + 1, 'a name, or ["name"] for other names')
    return { value: found[0], end: at + 1 + found[0].length }
  }
  if (text[at] !== '[') return createUnexpectedError(text, at, '.name, [0], ["name"] or =value')
  const found = matchAt(index, text, at)
  if (found !== null) return { value: Number(found[1]), end: at + found[0].length }
  const key = matchAt(quoted, text, at)
  if (key === null)
    return createUnexpectedError(text, at + 1, 'a number or a name in double quotes, followed by ]')
  try {
    return { value: JSON.parse(key[1] as string) as string, end: at + key[0].length }
  } catch {
    // The quotes match, but the name contains an escape that JSON does not have.
    return createUnexpectedError(text, at + 1, 'a name that is a JSON string')
  }
}

function readValue(path: JsonPath, text: string): JsonTest | InvalidPath {
  let value: unknown = text
  try {
    value = JSON.parse(text)
  } catch {
    // Not JSON, so it is plain text: `$.status=open` needs no quotes.
  }
  if (typeof value === 'object' && value !== null) {
    return {
      problem: 'compares with an object or a list; only texts, numbers, true, false and null can be compared',
    }
  }
  if (typeof value === 'string' && !isStorableText(value)) {
    return { problem: 'compares with a text that contains a NUL character or an unpaired surrogate' }
  }
  // The parsed number may be rounded, so the given text is stored and compared.
  if (typeof value === 'number') return { path, value: { number: text.trim() } }
  return { path, value: value as string | boolean | null }
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

function createUnexpectedError(text: string, at: number, wanted: string): InvalidPath {
  const found = at >= text.length ? 'the end' : JSON.stringify(text.slice(at, at + 10))
  return { problem: `cannot be read at character ${at + 1}: expected ${wanted}, found ${found}` }
}

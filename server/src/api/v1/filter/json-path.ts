import type { JsonNumber } from '../../../core/json-number.ts'

/**
 * The small JSON path of our filters: `$.order.lines[0]["unit price"]`, that is `$` and then names and places.
 * No wildcards, slices or expressions: what it says can be found in one payload by walking once.
 */
export type JsonPath = readonly (string | number)[]
export type JsonTest = Readonly<{ path: JsonPath; value: string | boolean | null | JsonNumber }>

/** `problem` is a sentence without its subject, and says at which character. */
export type Unreadable = Readonly<{ problem: string }>

const depthMax = 32
const name = /[\p{L}\p{N}_$-]+/uy
const place = /\[(\d{1,9})\]/y
// One way to read each character: linear however long the text is.
const quoted = /\[("(?:[^"\\]|\\.)*")\]/y

/** `<path>=<value>`. The value is JSON where it is a number, true, false, null or a quoted text; else it is text as it stands. */
export function parseJsonTest(text: string): JsonTest | Unreadable {
  const read = readPath(text)
  if ('problem' in read) return read
  const { path, end } = read
  if (path.length === 0) return { problem: 'names no field: after $ comes .name, [0] or ["name"]' }
  if (text[end] !== '=') {
    return end === text.length
      ? { problem: 'has no value: write it as <path>=<value>' }
      : unexpected(text, end, '.name, [0], ["name"] or =value')
  }
  return readValue(path, text.slice(end + 1))
}

function readPath(text: string): Readonly<{ path: JsonPath; end: number }> | Unreadable {
  if (!text.startsWith('$')) return unexpected(text, 0, '$, where every path begins')
  const path: (string | number)[] = []
  let end = 1
  while (end < text.length && text[end] !== '=') {
    const step = readStep(text, end)
    if ('problem' in step) return step
    path.push(step.value)
    if (path.length > depthMax) return { problem: `is deeper than ${depthMax} steps` }
    end = step.end
  }
  return { path, end }
}

function readStep(text: string, at: number): Readonly<{ value: string | number; end: number }> | Unreadable {
  if (text[at] === '.') {
    const found = matchAt(name, text, at + 1)
    if (found === null) return unexpected(text, at + 1, 'a name; other names are written as ["name"]')
    return { value: found[0], end: at + 1 + found[0].length }
  }
  if (text[at] !== '[') return unexpected(text, at, '.name, [0], ["name"] or =value')
  const index = matchAt(place, text, at)
  if (index !== null) return { value: Number(index[1]), end: at + index[0].length }
  const key = matchAt(quoted, text, at)
  if (key === null) return unexpected(text, at + 1, 'a number or a name in double quotes, and then ]')
  try {
    return { value: JSON.parse(key[1] as string) as string, end: at + key[0].length }
  } catch {
    // Quotes that match around an escape that JSON does not know.
    return unexpected(text, at + 1, 'a name that is a JSON string')
  }
}

function readValue(path: JsonPath, text: string): JsonTest | Unreadable {
  let value: unknown = text
  try {
    value = JSON.parse(text)
  } catch {
    // Not JSON, so it is the text itself: `$.status=open` needs no quotes.
  }
  if (typeof value === 'object' && value !== null) {
    return { problem: 'compares with an object or a list; only texts, numbers, true, false and null can be' }
  }
  if (typeof value === 'string' && (value.includes('\0') || !value.isWellFormed())) {
    return { problem: 'compares with a text that holds a NUL character or an unpaired surrogate' }
  }
  // What was read may be rounded; what is shown again, stored and compared is what was given.
  if (typeof value === 'number') return { path, value: { number: text.trim() } }
  return { path, value: value as string | boolean | null }
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

function unexpected(text: string, at: number, wanted: string): Unreadable {
  const found = at >= text.length ? 'its end' : JSON.stringify(text.slice(at, at + 10))
  return { problem: `cannot be read at character ${at + 1}: expected ${wanted}, found ${found}` }
}

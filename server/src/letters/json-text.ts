/**
 * The parts of a JSON text as they are written: what parsing loses is there still, such as the digits of a large
 * number, a name that is repeated, spaces and escapes.
 *
 * Only for texts that `JSON.parse` has read: nothing is checked here, and nothing recurses.
 */

/** Of an object: names and the texts of their values, in order, repeats included. */
export function fieldTexts(text: string): readonly (readonly [name: string, text: string])[] {
  const fields: (readonly [string, string])[] = []
  for (let at = nextPart(text, skipSpace(text, 0) + 1); text.charCodeAt(at) !== brace.end; ) {
    const nameEnd = endOfString(text, at)
    const from = skipSpace(text, skipSpace(text, nameEnd) + 1)
    const end = endOfValue(text, from)
    fields.push([nameOf(text.slice(at, nameEnd)), text.slice(from, end)])
    at = nextPart(text, end)
  }
  return fields
}

/** Of a list: the texts of its elements. */
export function elementTexts(text: string): readonly string[] {
  const elements: string[] = []
  for (let at = nextPart(text, skipSpace(text, 0) + 1); text.charCodeAt(at) !== bracket.end; ) {
    const end = endOfValue(text, at)
    elements.push(text.slice(at, end))
    at = nextPart(text, end)
  }
  return elements
}

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const brace = { start: 0x7b, end: 0x7d }
const bracket = { start: 0x5b, end: 0x5d }

function nameOf(literal: string): string {
  return literal.includes('\\') ? (JSON.parse(literal) as string) : literal.slice(1, -1)
}

function nextPart(text: string, from: number): number {
  const at = skipSpace(text, from)
  return text.charCodeAt(at) === comma ? skipSpace(text, at + 1) : at
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (text.charCodeAt(at) <= 0x20) at++
  return at
}

function endOfValue(text: string, from: number): number {
  const first = text.charCodeAt(from)
  if (first === quote) return endOfString(text, from)
  if (first !== brace.start && first !== bracket.start) {
    let at = from
    while (at < text.length && !isEnd(text.charCodeAt(at))) at++
    return at
  }
  let depth = 0
  for (let at = from; ; ) {
    const code = text.charCodeAt(at)
    if (code === quote) {
      at = endOfString(text, at)
      continue
    }
    if (code === brace.start || code === bracket.start) depth++
    if (code === brace.end || code === bracket.end) depth--
    at++
    if (depth === 0) return at
  }
}

/** Of a number, true, false or null. */
function isEnd(code: number): boolean {
  return code <= 0x20 || code === comma || code === brace.end || code === bracket.end
}

function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); ; at = text.indexOf('"', at + 1)) {
    let escapes = 0
    while (text.charCodeAt(at - 1 - escapes) === backslash) escapes++
    if (escapes % 2 === 0) return at + 1
  }
}

/**
 * Finds the parts of a JSON text without parsing their values. The parts are slices of the text, so they keep
 * everything that parsing loses: the digits of large numbers, repeated names, spaces and escapes.
 *
 * Only for texts that `JSON.parse` has accepted: nothing is checked here. No function recurses, so deeply
 * nested texts do not overflow the stack.
 */

/** The names of an object and the texts of their values, in order, with repeated names. */
export function splitFields(text: string): readonly (readonly [name: string, text: string])[] {
  const fields: (readonly [string, string])[] = []
  for (let at = findNextPart(text, skipSpace(text, 0) + 1); text.charCodeAt(at) !== brace.end; ) {
    const nameEnd = endOfString(text, at)
    const from = skipSpace(text, skipSpace(text, nameEnd) + 1)
    const end = endOfValue(text, from)
    fields.push([decodeName(text.slice(at, nameEnd)), text.slice(from, end)])
    at = findNextPart(text, end)
  }
  return fields
}

/** The texts of the elements of an array. */
export function splitElements(text: string): readonly string[] {
  const elements: string[] = []
  for (let at = findNextPart(text, skipSpace(text, 0) + 1); text.charCodeAt(at) !== bracket.end; ) {
    const end = endOfValue(text, at)
    elements.push(text.slice(at, end))
    at = findNextPart(text, end)
  }
  return elements
}

/**
 * The text of the value at a path; undefined if there is none. The last of several equal names counts, as for
 * `JSON.parse`. Each character is read once, independent of the length of the path.
 */
export function findText(text: string, path: readonly (string | number)[]): string | undefined {
  const root = skipSpace(text, 0)
  if (path.length === 0) return text.slice(root, endOfValue(text, root))
  if (!isOpening(text.charCodeAt(root))) return undefined
  let found: string | undefined
  // The open objects and arrays, all of them on the path. An array has its next index, an object has null.
  const open = [toFirstIndex(text, root)]
  for (let at = findNextPart(text, root + 1); open.length > 0; at = findNextPart(text, at)) {
    const depth = open.length
    if (isClosing(text.charCodeAt(at))) {
      open.pop()
      at++
      continue
    }
    const index = open[depth - 1] ?? null
    let step: string | number
    if (index === null) {
      const nameEnd = endOfString(text, at)
      step = decodeName(text.slice(at, nameEnd))
      at = skipSpace(text, skipSpace(text, nameEnd) + 1)
    } else {
      step = index
      open[depth - 1] = index + 1
    }
    const isOnPath = step === path[depth - 1]
    if (isOnPath) found = undefined
    if (isOnPath && depth < path.length && isOpening(text.charCodeAt(at))) {
      open.push(toFirstIndex(text, at))
      at++
      continue
    }
    const end = endOfValue(text, at)
    if (isOnPath && depth === path.length) found = text.slice(at, end)
    at = end
  }
  return found
}

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const brace = { start: 0x7b, end: 0x7d }
const bracket = { start: 0x5b, end: 0x5d }

function decodeName(literal: string): string {
  return literal.includes('\\') ? (JSON.parse(literal) as string) : literal.slice(1, -1)
}

/** The first index of the array that starts at `at`; null: it is an object. */
function toFirstIndex(text: string, at: number): number | null {
  return text.charCodeAt(at) === bracket.start ? 0 : null
}

/** The start of the next element or field, or of the closing bracket. */
function findNextPart(text: string, from: number): number {
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
  if (!isOpening(first)) {
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
    if (isOpening(code)) depth++
    if (isClosing(code)) depth--
    at++
    if (depth === 0) return at
  }
}

function isOpening(code: number): boolean {
  return code === brace.start || code === bracket.start
}

function isClosing(code: number): boolean {
  return code === brace.end || code === bracket.end
}

/** Whether the character ends a number, true, false or null. */
function isEnd(code: number): boolean {
  return code <= 0x20 || code === comma || isClosing(code)
}

function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); ; at = text.indexOf('"', at + 1)) {
    let escapes = 0
    while (text.charCodeAt(at - 1 - escapes) === backslash) escapes++
    if (escapes % 2 === 0) return at + 1
  }
}

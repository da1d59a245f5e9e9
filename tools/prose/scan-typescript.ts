/**
 * Finds the prose in a TypeScript file: its comments and its string literals. This is a scanner, not a
 * parser: it only knows where comments, strings, templates and regular expressions start and end.
 */
export type Span = Readonly<{ start: number; end: number }>

export type ScannedFile = Readonly<{
  comments: readonly Span[]
  /** Each literal without its quotes; a template is one span, with its `${…}` parts. */
  strings: readonly Span[]
  /** The text with comments and literals blanked: same length, same line breaks. */
  code: string
}>

type Scan = { text: string; at: number; code: string[]; comments: Span[]; strings: Span[] }

const regexpPredecessors = new Set('(,=:[!&|?{};+-*%<>~^'.split(''))
const regexpKeyword = /(?:^|[^\w$.])(?:return|typeof|case|in|of|void|delete|do|else|yield|await)$/

export function scanTypeScript(text: string): ScannedFile {
  const scan: Scan = { text, at: 0, code: text.split(''), comments: [], strings: [] }
  scanCode(scan, undefined)
  return { comments: scan.comments, strings: scan.strings, code: scan.code.join('') }
}

/** Reads code up to the end of the text, or up to the brace that closes a `${` of a template. */
function scanCode(scan: Scan, closing: '}' | undefined): void {
  let depth = 0
  while (scan.at < scan.text.length) {
    const char = scan.text[scan.at]
    if (closing !== undefined && char === '}' && depth === 0) return
    if (char === '{') depth++
    if (char === '}') depth--
    if (!scanLiteral(scan, char)) scan.at++
  }
}

function scanLiteral(scan: Scan, char: string | undefined): boolean {
  if (char === '/') return scanSlash(scan)
  if (char === "'" || char === '"') return scanString(scan, char)
  if (char === '`') return scanTemplate(scan)
  return false
}

function scanSlash(scan: Scan): boolean {
  const next = scan.text[scan.at + 1]
  if (next === '/') return endComment(scan, scan.text.indexOf('\n', scan.at))
  if (next === '*') {
    const end = scan.text.indexOf('*/', scan.at + 2)
    return endComment(scan, end === -1 ? -1 : end + 2)
  }
  return scanRegexp(scan)
}

function endComment(scan: Scan, found: number): boolean {
  const end = found === -1 ? scan.text.length : found
  scan.comments.push({ start: scan.at, end })
  blank(scan, scan.at, end)
  scan.at = end
  return true
}

function scanRegexp(scan: Scan): boolean {
  const before = scan.code
    .slice(Math.max(0, scan.at - 200), scan.at)
    .join('')
    .trimEnd()
  const last = before.at(-1)
  if (last !== undefined && !regexpPredecessors.has(last) && !regexpKeyword.test(before)) return false
  const literal = /^\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/\w*/.exec(
    scan.text.slice(scan.at, scan.at + 2_000),
  )
  if (literal === null) return false
  const end = scan.at + literal[0].length
  blank(scan, scan.at + 1, end - 1)
  scan.at = end
  return true
}

/** A quote without a partner on its line is an apostrophe in JSX text. */
function scanString(scan: Scan, quote: string): boolean {
  let end = scan.at + 1
  while (scan.text[end] !== quote) {
    if (end >= scan.text.length || scan.text[end] === '\n') return false
    end += scan.text[end] === '\\' ? 2 : 1
  }
  scan.strings.push({ start: scan.at + 1, end })
  blank(scan, scan.at + 1, end)
  scan.at = end + 1
  return true
}

function scanTemplate(scan: Scan): boolean {
  const start = scan.at + 1
  const literal: Span[] = []
  let from = start
  scan.at = start
  while (scan.at < scan.text.length && scan.text[scan.at] !== '`') {
    if (scan.text[scan.at] === '\\') scan.at += 2
    else if (scan.text.startsWith('${', scan.at)) {
      literal.push({ start: from, end: scan.at })
      scan.at += 2
      scanCode(scan, '}')
      scan.at++
      from = scan.at
    } else scan.at++
  }
  literal.push({ start: from, end: scan.at })
  for (const part of literal) blank(scan, part.start, part.end)
  scan.strings.push({ start, end: scan.at })
  scan.at++
  return true
}

function blank(scan: Scan, start: number, end: number): void {
  for (let index = start; index < end; index++) if (scan.code[index] !== '\n') scan.code[index] = ' '
}

const testCall = /(?:^|[^\w$.])(it|test|describe)(?:\.\w+)*(?:<[^()]*>)?\s*$/

/** The test function that takes the string at `start` as its name; undefined for other strings. */
export function testFunctionOf(code: string, start: number): 'it' | 'describe' | undefined {
  const before = code.slice(0, start - 1).trimEnd()
  if (!before.endsWith('(')) return undefined
  const callee = withoutCalls(before.slice(0, -1).trimEnd())
  const name = testCall.exec(callee)?.[1]
  if (name === undefined) return undefined
  return name === 'describe' ? 'describe' : 'it'
}

/** `it.each([…])` → `it.each`: drops the argument lists, and the template of a tagged `each`. */
function withoutCalls(callee: string): string {
  let rest = callee
  while (rest.endsWith(')')) {
    const open = openingOf(rest)
    if (open === -1) return rest
    rest = rest.slice(0, open).trimEnd()
  }
  return rest
}

function openingOf(text: string): number {
  let depth = 0
  for (let index = text.length - 1; index >= 0; index--) {
    if (text[index] === ')') depth++
    if (text[index] === '(' && --depth === 0) return index
  }
  return -1
}

/**
 * The reason of a failure as one word: the text before the first colon of the message, or its first word.
 * `HTTP 503: upstream` becomes `http_503`, `network timeout` becomes `network`.
 *
 * A number is kept only if it is a code: attached to capitals, to one or two letters, or as one digit to a
 * word (`E11000`, `ORA-01017`, `x509`, `oauth2`); after a word that announces a code (`HTTP 503`, `exit
 * status 137`); or if the text has no words (`503 Service Unavailable`). Other numbers, ids, times and
 * addresses are left out: a reason that differs for every letter groups nothing.
 */
export function toReasonSlug(message: string | null): string {
  return toSlug(readHead(message ?? ''))
}

export function readHead(message: string): string {
  const text = message.slice(0, messageRead).trim()
  const colon = text.indexOf(':')
  if (colon < 0) return text.split(/\s/, 1)[0] ?? ''
  const head = text.slice(0, colon)
  // The colon belongs to an address or a time, so the head ends with the first part of a number.
  const isInNumber = isDigit(text.charCodeAt(colon + 1)) || isAddress.test(text.slice(colon, colon + 6))
  return isInNumber ? head.replace(halfNumber, '') : head
}

const isAddress = /^:[0-9a-fA-F]{0,4}:/
const halfNumber = /(?<![0-9A-Za-z])(?=[a-fA-F]{0,3}[0-9])[0-9a-fA-F]{1,4}$|[0-9]+$/

export function toSlug(head: string): string {
  const words = /[0-9@"']/.test(head) ? readWords(head) : head.toLowerCase().split(/[^a-z0-9]+/)
  const slug = words
    .filter((word) => word !== '')
    .join('_')
    .slice(0, slugMax)
  return slug === '' ? 'unknown' : slug
}

const messageRead = 512
const slugMax = 64
const codeDigitsMax = 5
const codesInARow = 2

/** Words that announce a code. */
const announcing = new Set([
  ...['http', 'https', 'status', 'code', 'response', 'error', 'err', 'errno', 'errcode', 'winerror'],
  ...['exit', 'signal', 'sqlstate', 'sqlcode', 'rc'],
])

/**
 * A quoted text, an email address, a part of a path with a digit, a UUID, a date, numbers joined by a sign.
 */
const variable =
  /"[^"\n]{0,200}"|(?<![0-9A-Za-z])'[^'\n]{0,200}'|[\w.%+-]{1,64}@[\w.-]{1,255}|[/\\][\w.%~@-]*[0-9@][\w.%~@-]*|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{0,2})?|[0-9]+(?:[.,][0-9]+)+/g

function readWords(head: string): string[] {
  const text = /[@"'/\\.,-]/.test(head) ? head.replaceAll(variable, ' ') : head
  const words: string[] = []
  const numbers: string[] = []
  let before = ''
  let beforeEnd = -1
  let codes = 0
  for (const { 0: word, index } of text.matchAll(/[0-9A-Za-z]+/g)) {
    const lower = word.toLowerCase()
    const kind = classifyWord(word)
    const isAnnounced = announcing.has(before.toLowerCase()) || (codes > 0 && codes < codesInARow)
    const isAfterCapitals = /^[A-Z]+[-_]$/.test(text.slice(beforeEnd - before.length, index))
    const isCode = isCodeAfter(kind, isAnnounced, isAfterCapitals)
    if (kind === 'word' || isCode) words.push(lower)
    else if (kind === 'numbered') words.push(lower.replace(/[0-9]+/, ''))
    else if (kind === 'number' || kind === 'ordinal') numbers.push(lower)
    codes = isCode ? codes + 1 : 0
    before = word
    beforeEnd = index + word.length
  }
  return words.length > 0 ? words : numbers.slice(0, codesInARow)
}

/**
 * `ordinal`: 3rd. `state`: may be an SQLSTATE. `numbered`: a word with a number that varies, such as user42.
 */
type WordKind = 'word' | 'number' | 'ordinal' | 'code' | 'state' | 'numbered' | 'id'

function isCodeAfter(kind: WordKind, isAnnounced: boolean, isAfterCapitals: boolean): boolean {
  switch (kind) {
    case 'code':
      return true
    case 'number':
      return isAnnounced || isAfterCapitals
    case 'state':
      return isAnnounced
    default:
      return false
  }
}

function classifyWord(word: string): WordKind {
  if (!/[0-9]/.test(word)) return 'word'
  if (!/[A-Za-z]/.test(word)) return word.length <= codeDigitsMax ? 'number' : 'id'
  const parts = /^([A-Za-z]*)([0-9]+)([A-Za-z]*)$/.exec(word)
  if (parts !== null) return classifyParts(parts)
  if (sqlState.test(word)) return 'code'
  return /^[0-9A-Z]{5}$/.test(word) ? 'state' : 'id'
}

/**
 * `parts`: a word whose digits stand together, and its letters before, its digits, and its letters after
 * them.
 */
function classifyParts([word = '', head = '', digits = '', tail = '']: readonly string[]): WordKind {
  if (digits.length > codeDigitsMax) return tail === '' && head.length > 0 ? 'numbered' : 'id'
  if (head === '') return tail.length <= 3 ? 'ordinal' : 'id'
  if (isErrorName(word)) return 'word'
  if (tail.length > 3) return 'id'
  const isCode =
    /^[A-Z]+$/.test(head + tail) ||
    head.length <= 2 ||
    digits.length === 1 ||
    announcing.has(head.toLowerCase())
  if (isCode) return 'code'
  return tail === '' ? 'numbered' : 'id'
}

const sqlState = /^(?:[0-9]{2}[A-Z][0-9]{2}|[0-9][A-Z][0-9]{3})$/

/** A class with a number in its name: `Base64DecodeError`. */
export function isErrorName(word: string): boolean {
  return /^[A-Za-z]+[0-9]{1,3}[A-Za-z]*(?:Error|Exception|Failure|Fault)$/.test(word)
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

/**
 * Replaces the parts of a message that differ from letter to letter: numbers, times, ids, addresses, quoted
 * texts. One pass from left to right with a bounded look ahead, so that no input makes it slow.
 */
import { isErrorName } from './reason.ts'

const other = 0
const letter = 1
const digit = 2
const space = 3
const quote = 4
const slash = 5
const at = 6
const colon = 7
/** Signs that the part of an email address before the `@` may contain. */
const joint = 8

const classes = new Uint8Array(65_536)
for (const code of [9, 10, 11, 12, 13, 32]) classes[code] = space
for (let code = 48; code <= 57; code++) classes[code] = digit
for (let code = 97; code <= 122; code++) classes[code] = letter
for (let code = 65; code <= 90; code++) classes[code] = letter
classes['"'.charCodeAt(0)] = quote
classes["'".charCodeAt(0)] = quote
classes['/'.charCodeAt(0)] = slash
classes['\\'.charCodeAt(0)] = slash
classes['@'.charCodeAt(0)] = at
classes[':'.charCodeAt(0)] = colon
for (const sign of '.-_+%') classes[sign.charCodeAt(0)] = joint

for (const code of [0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff]) classes[code] = space
for (let code = 0x2000; code <= 0x200a; code++) classes[code] = space

/** Beyond the end of the text the class is `other`. */
function classAt(text: string, index: number): number {
  return index < text.length ? (classes[text.charCodeAt(index)] as number) : other
}

const idMin = 12
const nameMax = 100
const quotedMax = 200
const apostrophe = 39
const dash = 45

export function normalize(message: string): string {
  return hasOnlyNumbers(message) ? message.replaceAll(number, '<n>').trim() : replaceVariables(message)
}

const number = /[0-9]+(?:[.:,][0-9]+)*/g

/**
 * Whether a message has no variable parts except numbers: no quotes, paths or addresses, single spaces, no
 * word that may be an id, a time or the name of an error. Most messages pass, and the test takes a fraction
 * of the time.
 */
function hasOnlyNumbers(message: string): boolean {
  let colons = 0
  /** The sign before the present word. */
  let before = 32
  for (let index = 0; ; index++) {
    const end = simpleWordEnd(message, index, before)
    if (end < 0) return false
    if (end === message.length) return true
    const code = message.charCodeAt(end)
    const isDoubleSpace = code === 32 && before === 32 && end === index
    if (isDoubleSpace || !isSimpleSign(code)) return false
    if (code === 32) colons = 0
    else if (code === 58 && ++colons > 1) return false
    before = code
    index = end
  }
}

/** Whether a sign is neither a quote, a slash, an `@` nor a space other than the ordinary one. */
function isSimpleSign(code: number): boolean {
  if (code >= 128) return false
  const kind = classes[code] as number
  return code === 32 || !(kind === quote || kind === slash || kind === at || kind === space)
}

/**
 * The end of the word that starts here; -1 if it may be more than a number with letters before or after it.
 */
function simpleWordEnd(message: string, start: number, before: number): number {
  let digits = 0
  let digitsAt = 0
  let end = start
  for (let kind = classAt(message, end); kind === letter || kind === digit; kind = classAt(message, ++end)) {
    if (kind === letter) continue
    if (digits === 0) digitsAt = end - start
    else if (digitsAt + digits !== end - start) return -1
    digits++
  }
  const length = end - start
  const mayBeDate = digits === 4 && length === 4 && message.charCodeAt(end) === dash
  return mayBeDate || mayBeId(length, digits, digitsAt, before) ? -1 : end
}

function mayBeId(length: number, digits: number, digitsAt: number, before: number): boolean {
  // The last part of a UUID may have letters only.
  if (digits === 0) return length >= idMin && before === dash
  return length >= idMin || (digitsAt === 0 && length - digits > 2)
}

function replaceVariables(message: string): string {
  const replacer = new Replacer(message)
  for (let index = 0; index < message.length; ) index = replacer.next(index)
  return replacer.finish()
}

/**
 * Copies a message and replaces its variable parts. Each `next` reads one word or sign and returns its end.
 */
class Replacer {
  readonly #message: string
  #output = ''
  /** The message is copied to the output up to here. */
  #copied = 0
  #isInAddress = false
  /** The start of the text that may be the first part of an email address, and the output up to there. */
  #addressAt = 0
  #outputAtAddress = ''
  #copiedAtAddress = 0

  constructor(message: string) {
    this.#message = message
  }

  next(index: number): number {
    const kind = classAt(this.#message, index)
    if (kind === letter || kind === digit || kind === joint) return this.#readWord(index, kind)
    const wasInAddress = this.#isInAddress
    this.#isInAddress = false
    switch (kind) {
      case space:
        return this.#readSpaces(index)
      case at:
        return wasInAddress ? this.#readDomain(index) : index + 1
      case quote: {
        const close = closingQuote(this.#message, index)
        return close > 0 ? this.#replace(index, close + 1, '<text>') : index + 1
      }
      case slash: {
        const [end, isVariable] = pathPart(this.#message, index + 1)
        return isVariable ? this.#replace(index + 1, end, '<n>') : end
      }
      case colon: {
        const mayBeAddress = !wasInAddress && classAt(this.#message, index + 1) === colon
        const end = mayBeAddress ? addressEnd(this.#message, index) : 0
        return end > 0 ? this.#replace(index, end, '<n>') : index + 1
      }
      default:
        return index + 1
    }
  }

  finish(): string {
    return (this.#output + this.#message.slice(this.#copied)).trim()
  }

  #readWord(index: number, kind: number): number {
    if (!this.#isInAddress) {
      this.#isInAddress = true
      this.#addressAt = index
      this.#outputAtAddress = this.#output
      this.#copiedAtAddress = this.#copied
    }
    if (kind === joint) return index + 1
    const plainEnd = kind === letter ? plainWordEnd(this.#message, index) : 0
    if (plainEnd > 0) return plainEnd
    const [end, shown] = wordAt(this.#message, index, kind)
    return shown === asItIs ? end : this.#replace(index, end, shown)
  }

  #readSpaces(index: number): number {
    let end = index + 1
    while (end < this.#message.length && classAt(this.#message, end) === space) end++
    const isSingle = end === index + 1 && this.#message.charCodeAt(index) === 32
    return isSingle ? end : this.#replace(index, end, ' ')
  }

  #readDomain(index: number): number {
    const end = domainEnd(this.#message, index + 1)
    if (end === index + 1) return end
    this.#output = this.#outputAtAddress
    this.#copied = this.#copiedAtAddress
    return this.#replace(this.#addressAt, end, '<email>')
  }

  #replace(start: number, end: number, shown: string): number {
    this.#output += this.#message.slice(this.#copied, start) + shown
    this.#copied = end
    return end
  }
}

const asItIs = ''

/**
 * The end of a word that has letters only and is not part of an id or address; 0 if it may be. Most words are
 * such.
 */
function plainWordEnd(message: string, start: number): number {
  let end = start + 1
  let kind = classAt(message, end)
  while (kind === letter) kind = classAt(message, ++end)
  const mayBeMore =
    kind === digit || (kind === colon && end - start <= 4) || (kind === joint && end - start === 8)
  return mayBeMore ? 0 : end
}

type Word = readonly [end: number, shown: string]

/**
 * Reads the run of letters and digits that starts here, and more if that belongs to one id, time or number.
 */
function wordAt(message: string, start: number, first: number): Word {
  let end = start + 1
  let last = first
  let runs = first === digit ? 1 : 0
  let kind = classAt(message, end)
  while (kind === letter || kind === digit) {
    if (kind === digit && last !== digit) runs++
    last = kind
    kind = classAt(message, ++end)
  }
  const joinedEnd = joinedIdEnd(message, start, end, kind)
  if (joinedEnd > 0) return [joinedEnd, '<n>']
  return runs === 0 ? [end, asItIs] : numberedWord(message, start, end, runs)
}

/**
 * The end of a UUID, network address or time that starts with the word; 0 if there is none. `next`: the class
 * of the character after the word.
 */
function joinedIdEnd(message: string, start: number, end: number, next: number): number {
  const length = end - start
  if (next === joint && length === 8 && isUuid(message, start)) return start + 36
  const addressed = next === colon && length <= 4 ? addressEnd(message, start) : 0
  if (addressed > 0) return addressed
  const mayBeTime = message.charCodeAt(start + 4) === dash && classAt(message, start) === digit
  return mayBeTime ? timeEnd(message, start) : 0
}

/** Replaces the variable parts of a word that has `runs` runs of digits. */
function numberedWord(message: string, start: number, end: number, runs: number): Word {
  const length = end - start
  const isName =
    length >= idMin && runs === 1 && isErrorName(message.slice(start, Math.min(end, start + nameMax)))
  if (isName) return [end, asItIs]
  if (length >= idMin || runs > 1) return [end, '<n>']
  // A number with its unit (30s), or a number that belongs to a word (E11000): keep the letters.
  const [head, digits, tail] = countParts(message, start, end)
  if (tail > 2 && head === 0) return [end, '<n>']
  if (tail > 0) return [end, `${message.slice(start, start + head)}<n>${message.slice(end - tail, end)}`]
  return [numberEnd(message, start + head + digits), `${message.slice(start, start + head)}<n>`]
}

/** Counts the letters, digits and letters of a word whose digits stand together. */
function countParts(message: string, start: number, end: number): readonly [number, number, number] {
  let first = start
  while (classAt(message, first) === letter) first++
  let last = first
  while (last < end && classAt(message, last) === digit) last++
  return [first - start, last - first, end - last]
}

/** Numbers joined by a sign are one number: 1.5, 10,000, 10.0.0.1:5432, 12:30:45. */
function numberEnd(message: string, index: number): number {
  let end = index
  for (;;) {
    const sign = message[end]
    if (sign !== '.' && sign !== ':' && sign !== ',') return end
    if (classAt(message, end + 1) !== digit) return end
    end += 2
    while (classAt(message, end) === digit) end++
  }
}

const uuid = /[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?![0-9a-zA-Z])/y

function isUuid(message: string, start: number): boolean {
  uuid.lastIndex = start
  return uuid.test(message)
}

const time =
  /[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(?: ?(?:Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2}))?)?(?![0-9a-zA-Z])/y

function timeEnd(message: string, start: number): number {
  time.lastIndex = start
  return time.test(message) ? time.lastIndex : 0
}

/** An IPv6 or MAC address. */
const address = /(?=[a-fA-F:]{0,30}[0-9])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![0-9a-zA-Z])/y

function addressEnd(message: string, start: number): number {
  address.lastIndex = start
  const [found] = address.exec(message) ?? []
  if (found === undefined) return 0
  const isWhole = found.includes('::') || found.split(':').length >= 6
  if (!isWhole) return 0
  // A single colon at the end is punctuation after the address.
  return start + (found.endsWith(':') && !found.endsWith('::') ? found.length - 1 : found.length)
}

function domainEnd(message: string, start: number): number {
  let end = start
  let last = start
  for (;;) {
    const kind = classAt(message, end)
    if (kind !== letter && kind !== digit && kind !== joint) return last
    end++
    if (kind !== joint) last = end
  }
}

/** An apostrophe within a word does not open a quoted text. */
function closingQuote(message: string, index: number): number {
  const code = message.charCodeAt(index)
  if (code === apostrophe && index > 0) {
    const before = classAt(message, index - 1)
    if (before === letter || before === digit) return 0
  }
  const last = Math.min(index + 1 + quotedMax, message.length - 1)
  for (let end = index + 1; end <= last; end++) {
    const each = message.charCodeAt(end)
    if (each === code) return end
    if (each === 10) return 0
  }
  return 0
}

/** A part of a path that contains a digit or an email address is variable: it names one thing. */
function pathPart(message: string, start: number): readonly [end: number, isVariable: boolean] {
  let isVariable = false
  let end = start
  for (;;) {
    const kind = classAt(message, end)
    if (kind === digit || (kind === at && end > start)) isVariable = true
    else if (kind !== letter && kind !== joint) return [end, isVariable]
    end++
  }
}

/**
 * A message without what changes from letter to letter: numbers, times, ids, addresses, quoted texts. One pass
 * from left to right; looking ahead is bounded, and nothing is read a second time: no input makes it slow.
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
/** What the part of an address before the `@` may have besides letters and digits. */
const joint = 8

const classes = new Uint8Array(128)
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

const wideSpaces = new Set([0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff])
for (let code = 0x2000; code <= 0x200a; code++) wideSpaces.add(code)

/** After the end there is nothing. */
function classAt(text: string, place: number): number {
  const code = text.charCodeAt(place)
  if (code < 128) return classes[code] as number
  return wideSpaces.has(code) ? space : other
}

const idMin = 12
const nameMax = 100
const quotedMax = 200
const apostrophe = 39
const dash = 45

export function normalize(message: string): string {
  return hasOnlyNumbers(message) ? message.replaceAll(number, '<n>').trim() : replaced(message)
}

const number = /[0-9]+(?:[.:,][0-9]+)*/g

/**
 * Whether nothing but numbers is to be replaced, which is so in most messages and found out in a fraction of the
 * time: no quotes, paths or addresses, one space at a time, no word that may be an id, a time or the name of an error.
 */
function hasOnlyNumbers(message: string): boolean {
  /** Of the present word: its length, its digits and where they begin; how many colons there were since a space. */
  let length = 0
  let digits = 0
  let digitsAt = 0
  let colons = 0
  /** What stands before it. */
  let before = 32
  for (let place = 0; place < message.length; place++) {
    const code = message.charCodeAt(place)
    const kind = code < 128 ? (classes[code] as number) : quote
    if (kind === letter) length++
    else if (kind === digit) {
      if (digits === 0) digitsAt = length
      else if (digitsAt + digits !== length) return false
      length++
      digits++
    } else {
      if (isMore(length, digits, digitsAt, before)) return false
      if (kind === quote || kind === slash || kind === at) return false
      if (kind === space) {
        if (code !== 32 || (before === 32 && length === 0)) return false
        colons = 0
      } else if (kind === colon && ++colons > 1) return false
      else if (code === dash && digits === 4 && length === 4) return false
      length = 0
      digits = 0
      before = code
    }
  }
  return !isMore(length, digits, digitsAt, before)
}

/** Whether a word may be more than a number with letters before it, or its unit after it. */
function isMore(length: number, digits: number, digitsAt: number, before: number): boolean {
  // The last part of a UUID may have letters only.
  if (digits === 0) return length >= idMin && before === dash
  return length >= idMin || (digitsAt === 0 && length - digits > 2)
}

function replaced(message: string): string {
  const { length } = message
  let made = ''
  /** What is not yet in `made` begins here. */
  let from = 0
  /** Where what may be the beginning of an address began, and what was made until there. */
  let addressAt = 0
  let madeAtAddress = ''
  let fromAtAddress = 0
  let isInAddress = false

  let place = 0
  while (place < length) {
    const kind = classAt(message, place)
    if (kind === letter || kind === digit || kind === joint) {
      if (!isInAddress) {
        isInAddress = true
        addressAt = place
        madeAtAddress = made
        fromAtAddress = from
      }
      if (kind === joint) {
        place++
        continue
      }
      const plainEnd = kind === letter ? plainWordEnd(message, place) : 0
      if (plainEnd > 0) {
        place = plainEnd
        continue
      }
      const [end, shown] = wordAt(message, place, kind)
      if (shown !== asItIs) {
        made += message.slice(from, place) + shown
        from = end
      }
      place = end
      continue
    }
    const wasInAddress = isInAddress
    isInAddress = false
    let end = place + 1
    let shown = asItIs
    if (kind === space) {
      while (end < length && classAt(message, end) === space) end++
      if (end > place + 1 || message.charCodeAt(place) !== 32) shown = ' '
    } else if (kind === at && wasInAddress) {
      end = domainEnd(message, place + 1)
      if (end > place + 1) {
        made = madeAtAddress
        from = fromAtAddress
        place = addressAt
        shown = '<email>'
      }
    } else if (kind === quote) {
      const close = closingQuote(message, place)
      if (close > 0) [end, shown] = [close + 1, '<text>']
    } else if (kind === slash) {
      const [partEnd, isVariable] = pathPart(message, end)
      if (isVariable) {
        made += `${message.slice(from, end)}<n>`
        from = partEnd
      }
      end = partEnd
    } else if (kind === colon && !wasInAddress && classAt(message, end) === colon) {
      const last = addressEnd(message, place)
      if (last > 0) [end, shown] = [last, '<n>']
    }
    if (shown !== asItIs) {
      made += message.slice(from, place) + shown
      from = end
    }
    place = end
  }
  return (made + message.slice(from)).trim()
}

const asItIs = ''

/** Most words are nothing but letters, and no part of anything. */
function plainWordEnd(message: string, start: number): number {
  let end = start + 1
  let kind = classAt(message, end)
  while (kind === letter) kind = classAt(message, ++end)
  const mayBeMore =
    kind === digit || (kind === colon && end - start <= 4) || (kind === joint && end - start === 8)
  return mayBeMore ? 0 : end
}

type Word = readonly [end: number, shown: string]

/** The run of letters and digits that begins here, or more where that is one id, time or number. */
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
  const length = end - start
  if (kind === joint && length === 8 && isUuid(message, start)) return [start + 36, '<n>']
  if (kind === colon && length <= 4) {
    const addressed = addressEnd(message, start)
    if (addressed > 0) return [addressed, '<n>']
  }
  if (runs === 0) return [end, asItIs]
  if (first === digit && message.charCodeAt(start + 4) === dash) {
    const timed = timeEnd(message, start)
    if (timed > 0) return [timed, '<n>']
  }
  if (length >= idMin && runs === 1 && isErrorName(message.slice(start, Math.min(end, start + nameMax)))) {
    return [end, asItIs]
  }
  if (length >= idMin || runs > 1) return [end, '<n>']
  // A number with its unit (30s), or one that belongs to a word (E11000): the letters say what it is.
  const [head, digits, tail] = partsOf(message, start, end)
  if (tail > 2 && head === 0) return [end, '<n>']
  if (tail > 0) return [end, `${message.slice(start, start + head)}<n>${message.slice(end - tail, end)}`]
  return [numberEnd(message, start + head + digits), `${message.slice(start, start + head)}<n>`]
}

/** How many letters, digits, letters a word has whose digits are next to each other. */
function partsOf(message: string, start: number, end: number): readonly [number, number, number] {
  let first = start
  while (classAt(message, first) === letter) first++
  let last = first
  while (last < end && classAt(message, last) === digit) last++
  return [first - start, last - first, end - last]
}

/** Numbers with a sign between them are one: 1.5, 10,000, 10.0.0.1:5432, 12:30:45. */
function numberEnd(message: string, place: number): number {
  let end = place
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

/** IPv6, or that of a network card. */
const address = /(?=[a-fA-F:]{0,30}[0-9])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![0-9a-zA-Z])/y

function addressEnd(message: string, start: number): number {
  address.lastIndex = start
  const [found] = address.exec(message) ?? []
  if (found === undefined) return 0
  const isWhole = found.includes('::') || found.split(':').length >= 6
  // A colon at the end ends what was said before, unless it is one of two.
  if (!isWhole) return 0
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

/** An apostrophe within a word opens nothing. */
function closingQuote(message: string, place: number): number {
  const code = message.charCodeAt(place)
  if (code === apostrophe && place > 0) {
    const before = classAt(message, place - 1)
    if (before === letter || before === digit) return 0
  }
  const last = Math.min(place + 1 + quotedMax, message.length - 1)
  for (let end = place + 1; end <= last; end++) {
    const each = message.charCodeAt(end)
    if (each === code) return end
    if (each === 10) return 0
  }
  return 0
}

/** A part of a path with a digit in it, or an address, is the name of one thing. */
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

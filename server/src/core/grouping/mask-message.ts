/**
 * Replaces the parts of a message that differ from letter to letter by masks (`<id>`, `<n>`, `<host>`), and
 * collects its codes. One pass from left to right with a bounded look ahead, so that no input makes it slow.
 */

import { isCodeByContext, shortCode } from './code-context.ts'
import { isFieldAhead, toFieldPath } from './field-names.ts'
import { maskUrl, maskUrlPath } from './mask-url.ts'
import { toPlainText } from './plain-text.ts'
import { isHost, isPath, isRandomWord, readTime, showNumbered } from './variable-words.ts'
import {
  announcesCode,
  announcesHttpStatus,
  beforeCode,
  codeKeys,
  errnoNames,
  fileEnding,
  grpcStatuses,
  httpMethods,
  mayNameProgram,
  namesProgram,
  textKeys,
  toolCode,
  typeNames,
  units,
  vendorCode,
} from './words.ts'

export type MaskedMessage = Readonly<{
  /** The message with masks, in one line. */
  text: string
  /**
   * Codes and names of the program that separate causes, in the order of the message, without repetitions.
   */
  codes: readonly string[]
}>

const wordMax = 512
const quotedMax = 200
const bracketMax = 2_000
const codesMax = 12

/**
 * Most messages of a queue differ only in their numbers, and a number matters only in a code. So messages are
 * cached with each digit of a number replaced by the same digit, except messages whose masked text still has
 * digits.
 */
export function maskMessage(message: string): MaskedMessage {
  if (message.length > cachedLengthMax || inBrackets.test(message)) return mask(message)
  const key = message.replaceAll(number, (digits) => anyDigits.slice(0, digits.length))
  let known = masked.get(key)
  if (known === undefined) {
    known = mask(key)
    if (masked.size >= cachedMax) masked.clear()
    // Copy the key: a slice would keep the whole text that it was cut from in memory.
    masked.set(Buffer.from(key).toString(), known)
  }
  return key === message || !/[0-9]/.test(known.text) ? known : mask(message)
}

const cachedMax = 2_000
const cachedLengthMax = 400
const masked = new Map<string, MaskedMessage>()
/** A number that is not part of a word. */
const number = /(?<![0-9\p{L}_.])[0-9]{1,20}(?![0-9\p{L}_.])/gu
/** A number that is a code only if it is an SQLSTATE. */
const inBrackets = /[[(][0-9]{5}[\])]/
/** Fours: the first digit of a status of HTTP or SMTP that is an error. */
const anyDigits = '4'.repeat(20)

function mask(message: string): MaskedMessage {
  return new Masker(toPlainText(message)).run()
}

const isSpace = 1
const isQuote = 2
const isBracket = 3
/** Ends a word. */
const isSign = 4

const kinds = new Uint8Array(65_536)
for (const code of [9, 10, 11, 12, 13, 32, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff])
  kinds[code] = isSpace
for (let code = 0x2000; code <= 0x200a; code++) kinds[code] = isSpace
for (const sign of ',;)]}<>|`”›»』」') kinds[sign.charCodeAt(0)] = isSign
for (const sign of '([{') kinds[sign.charCodeAt(0)] = isBracket

const closings: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  '„': '“',
  '“': '”',
  '«': '»',
  '‹': '›',
  '「': '」',
  '『': '』',
}
for (const sign of Object.keys(closings)) kinds[sign.charCodeAt(0)] = isQuote

class Masker {
  readonly #text: string
  #at = 0
  #output = ''
  readonly #codes: string[] = []
  /** The last two words or keys: they announce the kind of the next word. */
  #before = ''
  #earlier = ''
  /** Whether the text is a list of names after a key such as `"path"`. */
  #isInPath = false
  /** The closing quote of a text that is read like the message. */
  #openEnd = -1

  constructor(text: string) {
    this.#text = text
  }

  run(): MaskedMessage {
    while (this.#at < this.#text.length) this.#next()
    return { text: collapseMasks(this.#output), codes: this.#codes }
  }

  #next(): void {
    const kind = kinds[this.#text.charCodeAt(this.#at)]
    if (kind === isSpace) this.#readSpace()
    else if (kind === isQuote) this.#readQuoted()
    else if (kind === isBracket) this.#readBracket()
    else if (kind === isSign) this.#readSign()
    else this.#readWord()
  }

  #readSpace(): void {
    this.#at++
    if (!this.#output.endsWith(' ')) this.#output += ' '
  }

  #readSign(): void {
    const sign = this.#text[this.#at] as string
    if (sign === '<' && this.#readAngle()) return
    if (sign === ']') this.#isInPath = false
    if (sign === ';' || sign === '}') this.#remember('')
    this.#output += sign
    this.#at++
  }

  /** A mask that the worker wrote, or a short time such as `<1 sec`. */
  #readAngle(): boolean {
    const ahead = this.#text.slice(this.#at, this.#at + 40)
    const mask = /^<[a-z_*]{1,32}>/.exec(ahead)?.[0]
    const short = /^<[0-9.]{1,8} ?[a-z]{1,8}\b/.exec(ahead)?.[0]
    if (mask === undefined && short === undefined) return false
    this.#at += (mask ?? short ?? '').length
    this.#output += this.#toMask(mask ?? '<duration>')
    return true
  }

  /** SQL, values after `(column)=`, and names after a word such as `constraint`. */
  #readBracket(): void {
    const sign = this.#text[this.#at] as string
    const ahead = this.#text.slice(this.#at + 1, this.#at + 120)
    const isSql = /^\s*(?:select|insert|update|delete|merge|replace) \S/i.test(ahead)
    const isValue =
      sign === '('
        ? /(?:\)=|contains |value is )$/.test(this.#output)
        : bracketKey.test(this.#output.slice(-24))
    this.#output += sign
    if (isSql || isValue) {
      this.#at = this.#findClose(sign)
      this.#output += this.#toMask(isSql ? '<sql>' : '<text>')
      return
    }
    this.#at++
    const name = /^([A-Za-z_$][\w.$-]{0,99})[\])]/.exec(ahead)?.[1]
    if (name === undefined || !this.#isAfter(namesProgram)) return
    this.#at += name.length
    this.#output += this.#addCode(name)
  }

  /** The place of the bracket that closes the one at the present place, or the end of what is read. */
  #findClose(sign: string): number {
    const close = sign === '(' ? ')' : sign === '[' ? ']' : '}'
    const last = Math.min(this.#text.length, this.#at + bracketMax)
    let depth = 0
    for (let end = this.#at; end < last; end++) {
      const each = this.#text[end]
      if (each === sign) depth++
      else if (each === close && --depth === 0) return end
    }
    return last
  }

  #readQuoted(): void {
    const sign = this.#text[this.#at] as string
    if (this.#at === this.#openEnd) {
      this.#output += sign
      this.#at++
      this.#remember('')
      return
    }
    const close = findClosingQuote(this.#text, this.#at, sign)
    const content = close < 0 ? '' : this.#text.slice(this.#at + 1, close)
    const shown = close < 0 ? undefined : this.#showQuoted(content, close)
    if (shown === undefined) {
      if (close > 0) this.#openEnd = close
      this.#output += sign
      this.#at++
      return
    }
    this.#output += sign + shown + this.#text.charAt(close)
    this.#at = close + 1
  }

  /** Undefined: the quoted text is read like the message. */
  #showQuoted(content: string, close: number): string | undefined {
    const isName = quotedName.test(content)
    if (isName && this.#isKey(close)) {
      this.#isInPath = pathKeys.test(content)
      this.#remember(content)
      return content
    }
    if (/^(?:[A-Z]+ )?[a-z][a-z0-9+.-]*:\/\//.test(content) || this.#followsErrno(content)) return undefined
    const code = this.#findQuotedCode(content, close, isName && showNumbered(content) !== '<id>')
    if (code !== undefined) return this.#addCode(code)
    const isModule = /^module$/i.test(this.#before) && /^[@.\w/-]+$/.test(content)
    if (isModule || (isName && this.#mayNameProgram(content))) {
      this.#remember('')
      return content
    }
    if (this.#isAfter(textKeys)) return undefined
    this.#remember('')
    return content === '' ? '' : '<text>'
  }

  /** The text of an error of Python: (1205, 'Lock wait timeout exceeded'). */
  #followsErrno(content: string): boolean {
    return / \p{L}+ /u.test(content) && /\([0-9]{1,5}, $/.test(this.#output)
  }

  /** In a sentence, a colon follows a value too: user "ann": unknown. */
  #isKey(close: number): boolean {
    const sign = /^\s?([:=])(?![:=])/.exec(this.#text.slice(close + 1, close + 4))?.[1]
    return sign === '=' || (sign === ':' && /(?:^|[{,(\n]\s?)$/.test(this.#output))
  }

  /** Undefined: the quoted text is no code. */
  #findQuotedCode(content: string, close: number, isName: boolean): string | undefined {
    const isProgram = this.#isInPath || this.#isAfter(namesProgram) || this.#isAfter(codeKeys)
    if (isName && (isProgram || valueFor.test(this.#output.slice(-24)))) return content
    const path = isFieldAhead(this.#text, close + 1) ? toFieldPath(content) : undefined
    if (path !== undefined) return path
    if (this.#isAfter(textKeys) || (isName && this.#mayNameProgram(content))) return undefined
    return isCodeName(content) || errnoNames.has(content) || isConstant(content) ? content : undefined
  }

  /**
   * Names after words such as `function`, names in camel case, and names that are the whole message, such as
   * `KeyError: 'price'`. They stay in the message, where they may turn out as data.
   */
  #mayNameProgram(content: string): boolean {
    if (showNumbered(content) === '<id>') return false
    if (typeNames.has(content) || this.#isAfter(mayNameProgram) || /\bnamed? $/i.test(this.#output))
      return true
    return (isCamelCase(content) && !/[=:] ?$/.test(this.#output)) || content.length + 2 === this.#text.length
  }

  #readWord(): void {
    const text = this.#text
    const start = this.#at
    const last = Math.min(text.length, start + wordMax)
    let end = start
    let isPlain = true
    while (end < last) {
      const code = text.charCodeAt(end)
      if (!isInWord(text, end, code)) break
      if (!isLetter(code)) isPlain = false
      end++
    }
    if (isPlain) {
      this.#at = end
      this.#putPlain(text.slice(start, end))
      return
    }
    let wordEnd = end
    while (wordEnd > start && isEnding(text.charCodeAt(wordEnd - 1))) wordEnd--
    this.#at = wordEnd
    if (wordEnd > start) this.#putWord(text.slice(start, wordEnd))
    if (this.#at >= end) return
    const ending = text.slice(this.#at, end)
    this.#at = end
    this.#output += ending.length > 3 ? '...' : ending
    if (ending !== ':') this.#remember('')
  }

  /** A word of letters only. Most words are such. */
  #putPlain(word: string): void {
    const mayBeCode =
      this.#isInPath ||
      word.charCodeAt(0) === upperE ||
      mayEndKey(this.#output) ||
      announcesStatus.test(this.#before)
    const isSimple = !mayBeCode && word.length < longWordMin && !this.#output.endsWith('<n> ')
    const shown = isSimple ? word : this.#show(word)
    if (isSimple) this.#remember(word)
    this.#output += shown
  }

  #putWord(text: string): void {
    const lead = /^(?:[=#*~]+|:(?!:))(?=.)/.exec(text)?.[0] ?? ''
    this.#output += lead
    const word = text.slice(lead.length)
    const url = word.includes('://') ? word.search(/[A-Za-z][A-Za-z0-9+.-]{0,30}:\/\//) : -1
    const split = url < 0 ? findSplit(word, this.#text.slice(this.#at, this.#at + 9)) : 0
    const classEnd = classAndId.exec(word)?.[1]?.length ?? 0
    if (url >= 0) {
      if (url > 0) this.#putWord(word.slice(0, url))
      this.#output += this.#toMask(maskUrl(word.slice(url)))
    } else if (word.includes('@') && email.test(word)) this.#output += this.#toMask('<email>')
    else if (classEnd > 0) {
      // The identity of an entity: com.example.Order#17.
      this.#remember('')
      this.#output += `${word.slice(0, classEnd)}#<id>`
    } else if (split > 0) {
      this.#putWord(word.slice(0, split))
      this.#output += word[split] as string
      if (split + 1 < word.length) this.#putWord(word.slice(split + 1))
    } else {
      const shown = this.#show(word)
      this.#output += shown
    }
  }

  /** How a word without parts is shown. May change the end of the output. */
  #show(word: string): string {
    if (this.#isCode(word)) return this.#addCode(word)
    if (this.#before === 'constant' && enumConstant.test(word))
      return this.#toMask(word.replace(/[^.$]+$/, '<text>'))
    if (/[/.\]]/.test(word) && isFieldAhead(this.#text, this.#at)) {
      const path = toFieldPath(word)
      if (path !== undefined) return this.#addCode(path)
    }
    if (isPath(word)) return this.#toMask(this.#isRequestPath(word) ? maskUrlPath(word) : '<path>')
    if (/[0-9]/.test(word)) return this.#showNumbered(word)
    if (this.#output.endsWith('<n> ') && units.has(word.toLowerCase())) return this.#showUnit(word)
    const mask = findMask(word)
    if (mask !== '') return this.#toMask(mask)
    this.#isInPath = false
    this.#remember(word)
    return word
  }

  #isRequestPath(word: string): boolean {
    return httpMethods.has(this.#before.toUpperCase()) || /^\/(?:api|v[0-9]+)\//.test(word)
  }

  /** A number, its unit, and the same size in another unit are one value: `1190 bytes (1.16 KB)`. */
  #showUnit(word: string): string {
    this.#output = this.#output.slice(0, -'<n> '.length)
    this.#skip(/^\(s\)/)
    this.#skip(/^ \([0-9.,]{1,12} ?[KMGT]i?B\)/)
    return this.#toMask(/b(?:ytes?(?:\(s\))?)?$/i.test(word) ? '<size>' : '<duration>')
  }

  #showNumbered(word: string): string {
    const timeEnd = readTime(this.#text, this.#at - word.length, word)
    if (timeEnd >= 0) {
      this.#at = timeEnd
      return this.#toMask('<time>')
    }
    const shown = showNumbered(word)
    // The version of a product may have a comment: nginx/1.18.0 (Ubuntu).
    if (word.startsWith(`${shown}/`)) this.#skip(/^ \([\w .;-]{1,40}\)/)
    // A short number may be the code that a text follows: `14 UNAVAILABLE`, `550 5.1.1`.
    this.#remember(/^[0-9]{1,3}$/.test(word) ? word : shown.includes('<') ? '' : shown)
    return shown
  }

  /** Skips the text at the present place that the pattern matches. */
  #skip(pattern: RegExp): void {
    this.#at += pattern.exec(this.#text.slice(this.#at, this.#at + skippedMax))?.[0].length ?? 0
  }

  #isCode(word: string): boolean {
    if (errnoNames.has(word) || vendorCode.test(word) || isConstant(word)) return true
    if (toolCode.test(word) && this.#standsAsCode()) return true
    const after = this.#text.slice(this.#at, this.#at + 24)
    if (/^[0-9]/.test(word) || word.startsWith('-')) return this.#isNumericCode(word, after)
    // A short code of a bank or a vendor: rejected with reason AC04.
    if (this.#isAnnounced(announcesCode) && shortCode.test(word)) return true
    const isGrpc = grpcStatuses.has(word) && /^(?:code|statuscode|[0-9]{1,2})$/i.test(this.#before)
    if (isGrpc) return true
    // key=value, where the key names a kind of failure: type=missing, "status": FAILED
    const sign = /([=:])\s?$/.exec(this.#output)?.[1]
    if (sign === undefined || !this.#isAfter(codeKeys) || !/^[A-Za-z][A-Za-z_.-]{1,63}$/.test(word))
      return false
    return sign === '=' ? word !== 'null' : /[a-z][A-Z]|_/.test(word)
  }

  /** At the start or in brackets, in front of a colon, or behind a word that announces a code. */
  #standsAsCode(): boolean {
    const next = this.#text[this.#at]
    return /(?:^|[([] ?|[:,] )$/.test(this.#output) || next === ':' || this.#isAnnounced(announcesCode)
  }

  #isNumericCode(word: string, after: string): boolean {
    if (this.#isAnnounced(announcesCode) && announcedCode.test(word)) return true
    if (this.#isAnnounced(announcesHttpStatus) && /^[1-5][0-9]{2}$/.test(word)) return true
    return isCodeByContext(word, { text: this.#text, output: this.#output, after, before: this.#before })
  }

  #toMask(mask: string): string {
    this.#remember('')
    return mask
  }

  #addCode(code: string): string {
    if (this.#codes.length < codesMax && !this.#codes.includes(code)) this.#codes.push(code)
    this.#remember(code)
    return code
  }

  #remember(word: string): void {
    this.#earlier = this.#before
    this.#before = word
  }

  /** Whether one of the words stands before, or before a word such as `with`. */
  #isAnnounced(words: ReadonlySet<string>): boolean {
    return this.#isAfter(words) || (this.#isAfter(beforeCode) && words.has(this.#earlier.toLowerCase()))
  }

  #isAfter(words: ReadonlySet<string>): boolean {
    return this.#before !== '' && words.has(this.#before.toLowerCase())
  }
}

/** A bracket behind such a key has data: input_value={'kind': 'lamp'}. */
const bracketKey =
  /(?:^|[^A-Za-z0-9_.])(?:input|input_value|value|values|payload|body|data|params|parameters|row|record)=$/
/** The name of a parameter follows: invalid value given for "limit". */
const valueFor = /\b(?:provided|given|supplied|specified|configured|allowed|expected|accepted) for ["'`]?$/i
/** No enum constant com.example.Status.LOST: the last name is the value that was not found. */
const enumConstant = /^(?:[a-z_]\w*\.)+(?:[A-Z]\w*[.$])+\w+$/
const quotedName = /^[\p{L}_$@#][\p{L}\p{N}_$.@:-]{0,99}$/u
const classAndId = /^((?:[A-Za-z_$][\w$]*\.)+[A-Z][\w$]*)#[\w-]+$/
const email = /^[^@\s=:/]{1,64}@[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)+$/u
/** Words before the name of a gRPC status. */
const announcesStatus = /^(?:code|statuscode|[0-9]{1,2})$/i
const announcedCode = /^(?:-?[0-9]{1,6}|0[xX][0-9a-fA-F]{4,8}|[0-9][0-9A-Z]{4})$/
const longWordMin = 12
const skippedMax = 48

function findMask(word: string): string {
  if (fileEnding.test(word)) return '<file>'
  if (isHost(word)) return '<host>'
  return isRandomWord(word) ? '<id>' : ''
}

const pathKeys = /^(?:path|loc|instancePath|field|fields|property)$/i

/** Constants of a program: ERR_SOCKET_TIMEOUT. */
function isConstant(word: string): boolean {
  return /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/.test(word) && !/[0-9]{3}/.test(word)
}

function isCamelCase(text: string): boolean {
  return /^[a-z]{2,}(?:[A-Z][a-z]{2,})+$/.test(text)
}

/** A qualified name or a call of the program: com.example.Price.amount(), Order#total. */
function isCodeName(text: string): boolean {
  if (!/^[\w$]+(?:(?:\.|::|->|#)[\w$<>]+)*(?:\([\w$., <>[\]]*\))?$/.test(text)) return false
  const isQualified = /\.|::|->|#/.test(text) && /[A-Z_$]/.test(text)
  return (isQualified || text.endsWith(')')) && !/[0-9]{3}/.test(text)
}

const upperE = 69

/** Whether the output ends with `=` or `:`, so that the next word may be the value of a key. */
function mayEndKey(output: string): boolean {
  const at = output.endsWith(' ') ? output.length - 2 : output.length - 1
  const sign = output[at]
  return sign === '=' || sign === ':'
}

/** Letters of ASCII, and everything beyond it. */
function isLetter(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code >= 128
}

function isInWord(text: string, index: number, code: number): boolean {
  if (kinds[code] === 0) return true
  // An apostrophe between letters: can't, O'Brien.
  return text[index] === "'" && isBetweenLetters(text, index)
}

function isBetweenLetters(text: string, index: number): boolean {
  return /\p{L}/u.test(text[index - 1] ?? '') && /\p{L}/u.test(text[index + 1] ?? '')
}

/** . : ! ? … */
function isEnding(code: number): boolean {
  return code === 46 || code === 58 || code === 33 || code === 63 || code === 0x2026
}

/** The sign that separates a key from its value; 0 if the word has no parts. */
function findSplit(word: string, after: string): number {
  if (!/[=:#]/.test(word)) return 0
  const equals = word.indexOf('=')
  if (equals > 0) return equals
  const hashes = word.indexOf('##')
  if (hashes > 0) return hashes
  const colon = word.indexOf(':')
  if (colon <= 0 || word[colon + 1] === ':' || word[colon - 1] === ':') return 0
  const isTimeOrAddress = /^[0-9a-fA-F:.[\]-]+(?:T[0-9:.,Z+-]+)?(?:%\w+)?$/.test(word)
  if (isTimeOrAddress || /^[A-Za-z]:[\\/]/.test(word)) return 0
  const isHostAndPort =
    /^[\w.-]+:[0-9]{1,5}$/.test(word) && (isHost(word) || /[.-]/.test(word.slice(0, colon)))
  // A number with a unit is no port: orders-7:120240 ms.
  return isHostAndPort && !/^ (?:ms|s|sec|seconds|bytes)\b/.test(after) ? 0 : colon
}

/** An apostrophe within a word neither opens nor closes a quoted text. */
function findClosingQuote(text: string, index: number, sign: string): number {
  if (sign === "'" && /[\p{L}\p{N}]/u.test(text[index - 1] ?? '')) return -1
  const last = Math.min(index + 1 + quotedMax, text.length - 1)
  for (let end = index + 1; end <= last; end++) {
    const each = text[end]
    if (each === '\n') return -1
    if (each === '\\') end++
    else if (closes(sign, each) && (sign !== "'" || !isBetweenLetters(text, end))) return end
  }
  return -1
}

/** In „…“ and „…” either sign closes. */
function closes(opening: string, sign: string | undefined): boolean {
  return sign === closings[opening] || (opening === '„' && sign === '”')
}

/** Lists of values are one value: `<host>, <host>` becomes `<host>`. */
function collapseMasks(text: string): string {
  const first = text.indexOf('<')
  if (first < 0 || text.indexOf('<', first + 1) < 0) return text.trim()
  return text.replaceAll(/(<[a-z_*]+>)(?:(?:, ?| ?and | )\1)+/g, '$1').trim()
}

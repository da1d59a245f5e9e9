/**
 * Templates of messages. A template is a text with masks (`<id>`, `<n>`) for values that are recognised by
 * their shape, and holes (`<*>`) for values that were learned from several messages. It is read as a list of
 * words, so that it can be stored and shown as one text.
 */

/** `separator`: the signs in front of the word. `ending`: those behind the last word. */
export type Token = Readonly<{ text: string; separator: string; kind: TokenKind; ending?: string }>

/**
 * How likely a word is data. `mask`: recognised as data. `hole`: learned. `value`: has the shape of data,
 * such as `teal-vase` and `LOYAL`. `name`: may be data, such as `Anna`. `word`: a word of the message.
 * `symbol`: a name of the program, such as `unitPrice` and `com.example.Order`.
 */
export type TokenKind = 'mask' | 'hole' | 'value' | 'name' | 'word' | 'symbol'

export const hole = '<*>'
/** Stands for any number of words. */
export const longHole = '<**>'
export const tokensMax = 64

const part = /<[a-z_*]{1,32}>|[\p{L}\p{M}\p{N}_$@#&+~%*!?.'’\\-]+/gu

/** Japanese has no spaces: its words are about the runs of one script. */
const scriptChange =
  /(?<=\p{Script=Han})(?=[\p{Script=Hiragana}\p{Script=Katakana}])|(?<=\p{Script=Hiragana})(?=[\p{Script=Han}\p{Script=Katakana}])|(?<=[\p{Script=Katakana}ー])(?=[\p{Script=Han}\p{Script=Hiragana}])/u
const kana = /[\p{Script=Hiragana}\p{Script=Katakana}]/u

export function readTemplate(template: string): Token[] {
  const tokens: Token[] = []
  let end = 0
  for (const { text, start } of findWords(template)) {
    if (tokens.length >= tokensMax) return tokens
    const separator = template.slice(end, start)
    end = start + text.length
    const last = tokens.at(-1)
    if (last === undefined || !joinToken(tokens, last, text, separator)) {
      const kind = classify(text, last === undefined || startsSentence(separator))
      tokens.push({ text, separator, kind: separator.endsWith('=') ? toValueKind(text, kind) : kind })
    }
  }
  const last = tokens.pop()
  if (last !== undefined) tokens.push({ ...last, ending: template.slice(end) })
  return tokens
}

function* findWords(template: string): Generator<Readonly<{ text: string; start: number }>> {
  for (const found of template.matchAll(part)) {
    const [word] = found
    const trimmed = word.startsWith('<') ? word : trimSigns(word)
    if (trimmed === '') continue
    let start = found.index + word.indexOf(trimmed)
    for (const text of kana.test(trimmed) ? trimmed.split(scriptChange) : [trimmed]) {
      yield { text, start }
      start += text.length
    }
  }
}

/**
 * Whether the word is part of the token before it: neighbouring masks are one value (a list, a value with its
 * unit), and so is a name with its number (`worker-<n>`).
 */
function joinToken(tokens: Token[], last: Token, word: string, separator: string): boolean {
  const kind = classify(word, false)
  if (!isVariable(kind)) return false
  const index = tokens.length - 1
  if (isVariable(last.kind) && separator.length <= 2) {
    if (kind === 'hole' || last.kind === 'hole') tokens[index] = { ...last, text: longHole, kind: 'hole' }
    return true
  }
  if ((separator !== '' && !/^[-_.#]$/.test(separator)) || kana.test(last.text)) return false
  tokens[index] = {
    ...last,
    text: last.text + separator + word,
    kind: last.kind === 'value' ? 'value' : 'name',
  }
  return true
}

/** The value of a key is data: tenant=acme. */
function toValueKind(word: string, kind: TokenKind): TokenKind {
  return isVariable(kind) || /^(?:true|false)$/i.test(word) ? kind : 'value'
}

function startsSentence(separator: string): boolean {
  return /[.!?]/.test(separator) || /[:;] $/.test(separator)
}

export function writeTemplate(tokens: readonly Token[]): string {
  let text = ''
  for (const { text: word, separator } of tokens) text += separator + word
  return (text + (tokens.at(-1)?.ending ?? '')).trim()
}

export function isVariable(kind: TokenKind): boolean {
  return kind === 'mask' || kind === 'hole'
}

function trimSigns(word: string): string {
  return word.replace(/^[.'’!?+~*\\-]+/, '').replace(/[.'’!?\\-]+$/, '')
}

/** Capitals and digits in places where no name has them: ekuSHVnMiv, ptsuetHLOEhjyVdg2LMC. */
function hasOddCase(word: string): boolean {
  if (word.length < 8 || !/^[A-Za-z0-9]+$/.test(word) || !/[a-z]/.test(word) || !/[A-Z]/.test(word))
    return false
  const parts = word.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+/g)?.length ?? 1
  return parts >= 4 && word.length / parts < (word.length < oddMin ? 2.5 : 3.5)
}

const oddMin = 16

/** A name in camel case, or a qualified name of a class. */
const symbol =
  /^\p{Ll}+(?:\p{Lu}\p{Ll}+)+$|^(?:\p{Lu}\p{Ll}+){3,}$|^(?:[\p{L}_$][\p{L}\p{N}_$]*(?:\.|::|\\))+\p{Lu}[\p{L}\p{N}_$]*$|^\p{Lu}[\p{L}\p{N}_$]*(?:\.|::|\\)[\p{L}_$][\p{L}\p{N}_$.]*$/u

function classify(word: string, isSentenceStart: boolean): TokenKind {
  if (word === hole || word === longHole) return 'hole'
  if (word.startsWith('<')) return 'mask'
  if (symbol.test(word)) return 'symbol'
  // Names of errors, and of companies: AccessDenied, PayPal.
  if (/^\p{Lu}\p{Ll}+\p{Lu}\p{Ll}+$/u.test(word)) return 'word'
  if (/^\p{Ll}+(?:[-_]\p{Ll}+){2,}$/u.test(word) && word.includes('-')) return 'value'
  if (/^[\p{Lu}]{2,}(?:-[\p{Lu}]+)*$/u.test(word) && !isSentenceStart) return 'name'
  if (/^\p{Ll}+-\p{Ll}+$/u.test(word)) return 'name'
  if (hasOddCase(word)) return 'value'
  if (!isSentenceStart && /^\p{Lu}\p{Ll}/u.test(word)) return 'name'
  return 'word'
}

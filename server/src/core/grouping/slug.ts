/**
 * The short form of a message, from the masked text: the words before the first colon; without a colon, the
 * words up to the first code, or the first word. `HTTP 503: upstream` becomes `http_503`, `network timeout`
 * becomes `network`. If the first word says nothing, more words follow: `could not open the vault` becomes
 * `could_not_open_the_vault`.
 */
import type { MaskedMessage } from './mask-message.ts'
import { statusPhrases } from './words.ts'

const slugMax = 64
/** A longer URL is left out as a whole. */
const urlMax = 48
const wordsBeforeCode = 8
const wordsBehindData = 3
const wordsOfSentence = 6
const url = /[a-z][a-z0-9+.-]{0,30}:\/\/[^\s"'`,;)\]}]*[^\s"'`,;)\]}:.]/gi

export function toSlug({ text, codes }: MaskedMessage): string {
  // JSON has its codes between many keys.
  if (/^[[{]\s*["'[{]/.test(text) && codes.length > 0) return joinWords(codes.flatMap(readWords))
  const head = readHead(text, codes)
  const words = readWords(head)
  // A message that starts with data is named by the words behind it.
  return joinWords(
    words.length === 0 && /<|:\/\//.test(head) ? readWords(text).slice(0, wordsBehindData) : words,
  )
}

function readHead(text: string, codes: readonly string[]): string {
  if (text.startsWith(':')) return ''
  // A colon inside a URL does not end the head.
  const plain = text.replaceAll(url, (found) => found.replaceAll(':', ' '))
  const colon = plain.search(/:(?=\s|$)|(?<=[\p{L}\p{N}_\])]):(?=[\p{L}<])/u)
  if (colon >= 0) return dropNames(text.slice(0, colon))
  // `[Errno 111] x`: the text in front of the message is its own head.
  const ends = (text.startsWith('[') ? [] : codes)
    .map((code) => text.indexOf(code) + code.length)
    .filter((end) => end > 0)
  const first = text.slice(0, Math.min(...ends, text.length))
  if (ends.length > 0 && first.split(/\s+/).length <= wordsBeforeCode) return first + readPhrase(text, first)
  return readSentence(text)
}

/** The words behind a code that stands in a bracket at the start: `(1205, 'Lock wait timeout exceeded')`. */
function readPhrase(text: string, head: string): string {
  if (!/^[([]\P{L}{1,8}$/u.test(head)) return ''
  const phrase = /^[^\p{L}<]{1,4}((?:\p{L}[\p{L}'’-]*\s?){1,4})/u.exec(text.slice(head.length))?.[1]
  return phrase === undefined ? '' : ` ${phrase.trim().replace(connecting, '')}`
}

/** The first word; if that word says nothing, the words in front of the first comma, bracket or quote. */
function readSentence(text: string): string {
  const [first = ''] = text.split(/\s/, 1)
  if (!saysNothing.test(first)) return first
  const [clause = ''] = text.split(/[,;([{"“„«`']\s?|[.!?](?=\s|$)|\s[–—-]\s|\S*:\/\//u, 1)
  const words = dropNames(clause)
    .split(/\s+/)
    .filter((word) => word !== '')
  return words.slice(0, wordsOfSentence).join(' ') || first
}

/**
 * Without names of people and companies: several words with capitals behind a word without one. Connecting
 * words at the end lead to nothing then.
 */
function dropNames(text: string): string {
  const kept = text.replaceAll(names, (found, before: string, first: string) =>
    statusPhrases.has(first) ? found : before,
  )
  return kept === text ? text : kept.trimEnd().replace(connecting, '')
}

const names =
  /(?<=^|\s)(\p{Ll}\S*\s+)(\p{Lu}\p{Ll}[\p{L}'’-]*)(?:\s+(?:(?:&|van|von|de|da|del|der|bin|al-\S+)\s+)*\p{Lu}\p{Ll}[\p{L}'’.-]*)+(?=\s|$)/gu
/** Articles, pronouns, negations, prepositions and auxiliary verbs. */
const saysNothing =
  /^(?:an?|the|this|that|these|your|there|one|some|any|all|no|not|non|too|could|couldn't|can|can't|cannot|can not|may|must|should|would|will|is|are|was|were|has|have|had|does|do|did|for|from|of|to|in|on|at|by|with|while|when|after|before|during|it|we|you|der|die|das|den|dem|ein|eine|kein|keine|für|von|im|in|es|beim|el|la|los|las|un|una|le|les|une|des|il|o|os|as|não|не|нет|для|при|в|на|у)$/iu
const connecting =
  /(?:\s+(?:for|of|from|to|with|in|at|by|on|the|an?|für|von|mit|des|der|dem|den|pour|à|de|para|a|del|для|от|у))+$/iu

/** A URL is one word of several parts, so that it is never cut. */
function readWords(text: string): string[] {
  const words: string[] = []
  let end = 0
  for (const found of text.matchAll(url)) {
    words.push(...splitWords(text.slice(end, found.index)))
    const [address] = found
    if (address.length <= urlMax) words.push(splitWords(address.replace(/^[^:]*:/, '')).join('_'))
    end = found.index + address.length
  }
  return [...words, ...splitWords(text.slice(end))].filter((word) => word !== '')
}

function splitWords(text: string): string[] {
  const plain = text.replaceAll(/<[a-z_*]+>/g, ' ')
  return (plain.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? []).map((word) => word.slice(0, slugMax))
}

/** As many whole words as fit. */
function joinWords(words: readonly string[]): string {
  let slug = ''
  for (const word of words) {
    const longer = slug === '' ? word : `${slug}_${word}`
    if (longer.length > slugMax) break
    slug = longer
  }
  return slug === '' ? 'unknown' : slug
}

/**
 * The short form of a message, from the masked text: the words before the first colon; without a colon, the
 * words up to the first code, or the first word. `HTTP 503: upstream` becomes `http_503`, `network timeout`
 * becomes `network`.
 */
import type { MaskedMessage } from './mask-message.ts'

const slugMax = 64
/** A longer URL is left out as a whole. */
const urlMax = 48
const wordsBeforeCode = 8
const wordsBehindData = 3
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
  if (colon >= 0) return text.slice(0, colon)
  // `[Errno 111] x`: the text in front of the message is its own head.
  const ends = (text.startsWith('[') ? [] : codes)
    .map((code) => text.indexOf(code) + code.length)
    .filter((end) => end > 0)
  const first = text.slice(0, Math.min(...ends, text.length))
  if (ends.length > 0 && first.split(/\s+/).length <= wordsBeforeCode) return first
  return text.split(/\s/, 1)[0] ?? ''
}

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

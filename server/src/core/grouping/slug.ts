/**
 * The short form of a message, from the masked text: the words before the first colon; without a colon, the words up
 * to the first code, or the first word. `HTTP 503: upstream` becomes `http_503`, `network timeout` becomes `network`.
 */
import type { MaskedMessage } from './mask-message.ts'

const slugMax = 64
const wordsBeforeCode = 8
const url = /[a-z][a-z0-9+.-]*:\/\/[^\s"'`,;)\]}]*/gi

export function toSlug({ text, codes }: MaskedMessage): string {
  // JSON has its codes between many keys.
  if (/^[[{]/.test(text) && codes.length > 0) return joinWords(codes.flatMap(readWords))
  const head = readWords(readHead(text, codes))
  // A message that starts with data is named by the words behind it.
  const words = head.length > 0 ? head : readWords(text).slice(0, 3)
  return words.length === 0 ? 'unknown' : joinWords(words)
}

function readHead(text: string, codes: readonly string[]): string {
  // A colon inside a URL does not end the head.
  const plain = text.replaceAll(url, (found) => found.replaceAll(':', ' '))
  const colon = plain.search(/:(?=\s|$)|(?<=[\p{L}\p{N}_\])]):(?=[\p{L}<])/u)
  if (colon >= 0) return text.slice(0, colon)
  const ends = codes.map((code) => text.indexOf(code) + code.length).filter((end) => end > 0)
  const first = text.slice(0, Math.min(...ends, text.length))
  if (ends.length > 0 && first.split(/\s+/).length <= wordsBeforeCode) return first
  return text.split(/\s/, 1)[0] ?? ''
}

function readWords(text: string): string[] {
  const plain = text
    .replaceAll(url, (found) => (found.length <= slugMax / 2 ? found.replace(/^[^:]*:/, '') : ' '))
    .replaceAll(/<[a-z*]+>/g, ' ')
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

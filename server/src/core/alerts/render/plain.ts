/**
 * Texts of messages to people. Error texts come from outside, so a character that would change the text
 * around it is replaced: control characters, and marks that change the direction of writing.
 */
import { cutText } from '../../text/storable-text.ts'

/** Direction marks, embeddings and isolates, invisible separators and the byte order mark. */
const invisible = /[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/gu
const controls = /\p{Cc}/gu
const controlsInLine = /[^\P{Cc}\n\t]/gu

/** One line of at most `lengthMax` UTF-16 units. The end of a longer text is replaced with `…`. */
export function toLine(text: string, lengthMax: number): string {
  // Cut first: the texts may be long, and the rest is not shown.
  const plain = cutText(text, 2 * lengthMax + 100)
    .toWellFormed()
    .replace(invisible, '')
    .replace(controls, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
  return shorten(plain, lengthMax)
}

/** Several lines, for example of a stack trace, of at most `lengthMax` UTF-16 units together. */
export function toLines(text: string, lengthMax: number): string {
  const plain = cutText(text, 2 * lengthMax + 100)
    .toWellFormed()
    .replaceAll(/\r\n?/g, '\n')
    .replace(invisible, '')
    .replace(controlsInLine, ' ')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim()
  return shorten(plain, lengthMax)
}

export function shorten(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text
  return lengthMax < 1 ? '' : `${cutText(text, lengthMax - 1).trimEnd()}…`
}

/** `&`, `<`, `>` and quotes as HTML entities. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

import type { LetterEdit } from '../contract/letters.ts'
import { headersFromText } from './item-row.ts'
import { readBytes, readBytesOrNull, readNumber, readText, readTextOrNull } from './row-values.ts'

/** From a row of `letter_edits`, which has the same columns in both stores. */
export function decodeEdit(row: Readonly<Record<string, unknown>>): LetterEdit {
  return {
    number: readNumber(row, 'number'),
    at: readNumber(row, 'at'),
    actor: readText(row, 'actor'),
    payload: readBytes(row, 'payload'),
    key: readBytesOrNull(row, 'key'),
    headers: headersFromText(readTextOrNull(row, 'headers')),
  }
}

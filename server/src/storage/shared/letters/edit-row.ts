import type { LetterEdit } from '../../contract/letters.ts'
import { decodeHeaders } from '../items/item-row.ts'
import { readBytes, readBytesOrNull, readNumber, readText, readTextOrNull } from '../rows/row-values.ts'

/** From a row of `letter_edits`, which has the same columns in both stores, and `payload_bytes`. */
export function decodeEdit(row: Readonly<Record<string, unknown>>): LetterEdit {
  const payload = readBytes(row, 'payload')
  const payloadBytes = readNumber(row, 'payload_bytes')
  return {
    number: readNumber(row, 'number'),
    at: readNumber(row, 'at'),
    actor: readText(row, 'actor'),
    payload,
    ...(payload.length < payloadBytes && { payloadBytes }),
    key: readBytesOrNull(row, 'key'),
    headers: decodeHeaders(readTextOrNull(row, 'headers')),
  }
}

/** The order of letters in lists and exports, and the cursors that continue them. */
import { Type } from 'typebox'
import type { LetterCursor, LetterOrder } from '../../../storage/contract/letters.ts'
import { readCursor, writeCursor } from '../values/cursor.ts'

export const letterOrders = {
  dead_lettered_at: 'deadLetteredAt',
  updated_at: 'updatedAt',
} as const satisfies Record<string, LetterOrder>

export const orderFields = {
  order_by: Type.Enum(['dead_lettered_at', 'updated_at'], {
    default: 'dead_lettered_at',
    description: 'The time to sort by.',
  }),
  order: Type.Enum(['desc', 'asc'], { default: 'desc', description: 'desc: newest first.' }),
}

export function readLetterCursor(cursor: string, list: string): LetterCursor {
  const [value, id] = readCursor(cursor, list, ['number', 'string'])
  return { value, id }
}

export function writeLetterCursor({ value, id }: LetterCursor, list: string): string {
  return writeCursor(list, [value, id])
}

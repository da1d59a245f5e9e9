/**
 * The position at which a list continues. A cursor is opaque to callers. It is not signed, because it
 * contains nothing that a caller could not request otherwise. A cursor of another list or another order is
 * refused.
 */
import { Buffer } from 'node:buffer'
import { type TProperties, Type } from 'typebox'
import { isStorableText } from '../../../core/text/storable-text.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { nullable } from './schemas.ts'

export type CursorPart = string | number

/** `list` names the list and its order: `letters:dead_lettered_at:desc`. */
export function writeCursor(list: string, parts: readonly CursorPart[]): string {
  return Buffer.from(JSON.stringify([list, ...parts])).toString('base64url')
}

/** Returns the parts of a cursor, which must have the given types. */
export function readCursor<const K extends readonly ('string' | 'number')[]>(
  text: string,
  list: string,
  types: K,
): { -readonly [I in keyof K]: K[I] extends 'string' ? string : number } {
  const [found, ...parts] = decode(text)
  const isValid =
    found === list &&
    parts.length === types.length &&
    parts.every((part, index) => hasType(part, types[index] as 'string' | 'number'))
  if (isValid) return parts as never
  const isOtherList = typeof found === 'string'
  throw new InvalidRequest([
    {
      field: 'query.cursor',
      message: isOtherList
        ? 'belongs to another list or another order; use it with the parameters of the page before'
        : 'is not a cursor; use next_cursor of the page before unchanged',
    },
  ])
}

function decode(text: string): readonly unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(parts) ? parts : []
  } catch {
    // The caller reports the error.
    return []
  }
}

function hasType(part: unknown, type: 'string' | 'number'): boolean {
  if (type === 'number') return Number.isSafeInteger(part)
  return typeof part === 'string' && part.length <= 512 && isStorableText(part)
}

export const NextCursor = nullable(Type.String(), 'The `cursor` of the next page; null on the last page.')

/** The query of a list: its own parameters and the two that every list has. */
export function pageQuery<P extends TProperties>(own: P, limits: Readonly<{ default: number; max: number }>) {
  return Type.Object(
    {
      ...own,
      cursor: Type.Optional(
        Type.String({ maxLength: 5_000, description: '`next_cursor` of the page before.' }),
      ),
      limit: Type.Integer({
        minimum: 1,
        maximum: limits.max,
        default: limits.default,
        description: 'Entries per page.',
      }),
    },
    { additionalProperties: false },
  )
}

/**
 * Where a list goes on: opaque to callers, and nothing that they could not ask for otherwise, so it is not
 * signed. It is checked: a cursor of another list, or another order, is a mistake and said to be one.
 */
import { Buffer } from 'node:buffer'
import { type TProperties, type TSchema, Type } from 'typebox'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'

export type CursorPart = string | number

/** `list` names the list and its order: `letters:diedAt:desc`. */
export function writeCursor(list: string, parts: readonly CursorPart[]): string {
  return Buffer.from(JSON.stringify([list, ...parts])).toString('base64url')
}

/** The parts, of the types that are asked for. */
export function readCursor<const K extends readonly ('string' | 'number')[]>(
  text: string,
  list: string,
  kinds: K,
): { -readonly [I in keyof K]: K[I] extends 'string' ? string : number } {
  const [found, ...parts] = decode(text)
  const isOurs =
    found === list &&
    parts.length === kinds.length &&
    parts.every((part, index) => isOf(part, kinds[index] as 'string' | 'number'))
  if (isOurs) return parts as never
  const isOther = typeof found === 'string'
  throw new InvalidRequest([
    {
      field: 'query.cursor',
      message: isOther
        ? 'is of another list, or of another order of it: give it with the parameters it was given for'
        : 'is not a cursor: give next_cursor of the page before, as it is',
    },
  ])
}

function decode(text: string): readonly unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(parts) ? parts : []
  } catch {
    // Said by the caller, in words.
    return []
  }
}

function isOf(part: unknown, kind: 'string' | 'number'): boolean {
  if (kind === 'number') return Number.isSafeInteger(part)
  // Texts no store could look for would fail there, not here.
  return typeof part === 'string' && part.length <= 100 && part.isWellFormed() && !part.includes('\0')
}

export const NextCursor = Type.Union([Type.String(), Type.Null()], {
  description: 'What to give as `cursor` for the next page; null when there is nothing more.',
})

/** The two parameters that every list has, beside its own. */
export function pageQuery<P extends TProperties>(own: P, limits: Readonly<{ default: number; max: number }>) {
  return Type.Object(
    {
      ...own,
      cursor: Type.Optional(
        Type.String({ maxLength: 1_000, description: '`next_cursor` of the page before.' }),
      ),
      limit: Type.Integer({ minimum: 1, maximum: limits.max, default: limits.default }),
    },
    { additionalProperties: false },
  )
}

export function nullable<S extends TSchema>(schema: S, description?: string) {
  return Type.Union([schema, Type.Null()], description === undefined ? {} : { description })
}

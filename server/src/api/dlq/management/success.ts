import { type TSchema, Type } from 'typebox'

/** What the management face answers when all is well. */
export function Success<const S extends TSchema>(data: S) {
  return Type.Object({ ok: Type.Literal(true), data, error: Type.Null() })
}

export function createSuccess<T>(data: T): { ok: true; data: T; error: null } {
  return { ok: true, data, error: null }
}

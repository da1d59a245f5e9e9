import type { TSchema } from 'typebox'
import { findTextFault, isStorableText } from '../../../core/text/storable-text.ts'

/** A text in a request that a store cannot keep unchanged. `pointer` is a JSON pointer to it. */
export type UnstorableText = Readonly<{ pointer: string; message: string }>

/** Marks the schema of a value that is stored as bytes: its texts may contain NUL characters. */
export const storedAsBytes = { 'x-stored-as-bytes': true } as const

/** Marks the schema of a value that is repaired by its reader: its texts may contain anything. */
export const repairedWhenRead = { 'x-repaired-when-read': true } as const

/** A value in the request and the path to it. `isName`: the value is a name in an object. */
type Visited = Readonly<{ value: unknown; parent: Visited | null; key: string; isName?: boolean }>

/**
 * Finds a text that a store cannot keep, independently of the checks in its schema.
 *
 * PostgreSQL refuses a NUL character in a text, even in a search condition. An unpaired surrogate cannot be
 * encoded as UTF-8 and would be stored as a different character.
 */
export function findUnstorableText(value: unknown, schema: TSchema): UnstorableText | undefined {
  // Almost all requests are clean, and this check is much faster than the search below.
  if (isAllStorable(value)) return undefined
  const stack: Visited[] = [{ value, parent: null, key: '' }]
  for (let visited = stack.pop(); visited !== undefined; visited = stack.pop()) {
    if (typeof visited.value === 'string') {
      const fault = describeFault(visited.value, visited, schema)
      if (fault !== undefined) return fault
    } else if (isObject(visited.value)) {
      for (const [key, part] of Object.entries(visited.value)) {
        stack.push({ value: key, parent: visited, key, isName: true }, { value: part, parent: visited, key })
      }
    }
  }
  return undefined
}

/** Not recursive: where a schema allows any value, a body can be nested deeper than the call stack. */
function isAllStorable(value: unknown): boolean {
  const stack: unknown[] = [value]
  for (let part = stack.pop(); part !== undefined; part = stack.pop()) {
    const isFine = Array.isArray(part) ? pushElements(part, stack) : pushFields(part, stack)
    if (!isFine) return false
  }
  return true
}

/** Pushes the nested values of an array. Returns false if one of its own texts is not storable. */
function pushElements(array: readonly unknown[], stack: unknown[]): boolean {
  for (const element of array) {
    if (typeof element === 'string' && !isStorableText(element)) return false
    if (isObject(element)) stack.push(element)
  }
  return true
}

/**
 * Pushes the nested values of an object. Returns false if the value is, names or contains an unstorable text.
 */
function pushFields(value: unknown, stack: unknown[]): boolean {
  if (typeof value === 'string') return isStorableText(value)
  if (!isObject(value)) return true
  for (const key in value) {
    const field = (value as Record<string, unknown>)[key]
    if (!isStorableText(key) || (typeof field === 'string' && !isStorableText(field))) return false
    if (isObject(field)) stack.push(field)
  }
  return true
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function describeFault(text: string, visited: Visited, schema: TSchema): UnstorableText | undefined {
  const fault = findTextFault(text)
  if (fault === undefined) return undefined
  const keys: string[] = []
  for (let at = visited; at.parent !== null; at = at.parent) if (!at.isName) keys.push(at.key)
  keys.reverse()
  if (isMarked(repairedWhenRead, keys, schema)) return undefined
  if (fault === 'a NUL character' && isMarked(storedAsBytes, keys, schema)) return undefined
  return {
    pointer: keys.map((key) => `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''),
    message: `contains ${fault}`,
  }
}

/** Whether the value, or an object or array around it, has the mark. */
function isMarked(marks: object, keys: readonly string[], schema: TSchema): boolean {
  const [mark = ''] = Object.keys(marks)
  let own = schema
  return keys.some((key) => {
    own = findPart(own, key)
    return mark in own
  })
}

/** Returns the schema of a field or an element, or an empty schema if it is not declared that simply. */
function findPart(schema: TSchema, key: string): TSchema {
  const {
    properties = {},
    items = {},
    anyOf,
  } = schema as {
    properties?: Readonly<Record<string, TSchema>>
    items?: TSchema | readonly TSchema[]
    anyOf?: readonly TSchema[]
  }
  if (anyOf !== undefined) {
    const parts = anyOf.map((alternative) => findPart(alternative, key))
    return parts.find((part) => Object.keys(part).length > 0) ?? {}
  }
  if (Object.hasOwn(properties, key)) return properties[key] as TSchema
  return Array.isArray(items) ? (items[Number(key)] ?? {}) : (items as TSchema)
}

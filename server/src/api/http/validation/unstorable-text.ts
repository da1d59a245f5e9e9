import type { TSchema } from 'typebox'

/** A text in a request that no store keeps as it is: where it stands (a JSON pointer), and what is wrong with it. */
export type UnstorableText = Readonly<{ pointer: string; message: string }>

/** On a schema of what is kept as bytes: texts in it may hold a NUL character. */
export const storedAsBytes = { 'x-kept-as-bytes': true } as const

/** On a schema of what is mended where it is read: texts in it may hold anything. */
export const repairedWhenRead = { 'x-mended-where-read': true } as const

/** A value, and the way to it. `isName`: it is itself a name in an object. */
type Node = Readonly<{ value: unknown; before: Node | null; key: string; isName?: boolean }>

/**
 * Finds such a text, whatever the schema forgot to say about it.
 *
 * PostgreSQL refuses a NUL character in a text, also in one that it is only asked to look for. An unpaired
 * surrogate has no UTF-8 and would be stored as something else.
 */
export function findUnstorableText(value: unknown, schema: TSchema): UnstorableText | undefined {
  // Nearly always all is well, and that can be said in a fraction of the time.
  if (isAllStorable(value)) return undefined
  const places: Node[] = [{ value, before: null, key: '' }]
  for (let place = places.pop(); place !== undefined; place = places.pop()) {
    if (typeof place.value === 'string') {
      const fault = describeFault(place.value, place, schema)
      if (fault !== undefined) return fault
    } else if (isObject(place.value)) {
      for (const [key, part] of Object.entries(place.value)) {
        places.push({ value: key, before: place, key, isName: true }, { value: part, before: place, key })
      }
    }
  }
  return undefined
}

/** Without recursion: where a schema allows anything, a body can be nested deeper than the call stack. */
function isAllStorable(value: unknown): boolean {
  const parts: unknown[] = [value]
  for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
    if (typeof part === 'string') {
      if (!isStorable(part)) return false
    } else if (Array.isArray(part)) {
      for (const element of part) if (mayHoldText(element)) parts.push(element)
    } else if (isObject(part)) {
      for (const key in part) {
        const field = (part as Record<string, unknown>)[key]
        if (!isStorable(key) || (typeof field === 'string' && !isStorable(field))) return false
        if (isObject(field)) parts.push(field)
      }
    }
  }
  return true
}

function mayHoldText(value: unknown): boolean {
  return typeof value === 'string' || isObject(value)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

function describeFault(text: string, place: Node, schema: TSchema): UnstorableText | undefined {
  if (isStorable(text)) return undefined
  const isWellFormed = text.isWellFormed()
  const keys: string[] = []
  for (let at = place; at.before !== null; at = at.before) if (!at.isName) keys.push(at.key)
  keys.reverse()
  if (isMarked(repairedWhenRead, keys, schema)) return undefined
  if (isWellFormed && isMarked(storedAsBytes, keys, schema)) return undefined
  return {
    pointer: keys.map((key) => `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''),
    message: isWellFormed ? 'contains a NUL character' : 'contains an unpaired surrogate',
  }
}

/** It, or something that it is in. */
function isMarked(marks: object, keys: readonly string[], schema: TSchema): boolean {
  const [mark = ''] = Object.keys(marks)
  let own = schema
  return keys.some((key) => {
    own = findPart(own, key)
    return mark in own
  })
}

/** The schema of a field or of an element; an empty one where it is not that simple. */
function findPart(schema: TSchema, key: string): TSchema {
  const { properties = {}, items = {} } = schema as {
    properties?: Readonly<Record<string, TSchema>>
    items?: TSchema | readonly TSchema[]
  }
  if (Object.hasOwn(properties, key)) return properties[key] as TSchema
  return Array.isArray(items) ? (items[Number(key)] ?? {}) : (items as TSchema)
}

import type { TSchema } from 'typebox'

/**
 * The number of elements in a list of a request whose schema has no `maxItems`. Larger than the limits that
 * handlers check themselves (10,000 ids of a campaign), because their messages say what to do instead.
 */
export const elementsMax = 20_000

/** A list with more elements than its schema allows. `pointer` is a JSON pointer to it. */
export type LongList = Readonly<{ pointer: string; message: string }>

type ListSchema = Readonly<{
  type?: unknown
  maxItems?: number
  items?: TSchema
  properties?: Readonly<Record<string, TSchema>>
  anyOf?: readonly TSchema[]
}>

/**
 * Finds a list that is too long without looking at its elements. The validator checks all elements of a list
 * before it compares the length, and describes each wrong one.
 */
export function findLongList(value: unknown, schema: TSchema, pointer = ''): LongList | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { type, maxItems = elementsMax, items, properties, anyOf = [] } = schema as ListSchema
  for (const alternative of anyOf) {
    const found = findLongList(value, alternative, pointer)
    if (found !== undefined) return found
  }
  if (!Array.isArray(value)) return findInFields(value, properties ?? {}, pointer)
  if (type !== 'array') return undefined
  if (value.length > maxItems) {
    return { pointer, message: `has ${value.length} entries; at most ${maxItems} are allowed` }
  }
  if (items === undefined) return undefined
  for (const [index, element] of value.entries()) {
    const found = findLongList(element, items, `${pointer}/${index}`)
    if (found !== undefined) return found
  }
  return undefined
}

function findInFields(
  value: object,
  properties: Readonly<Record<string, TSchema>>,
  pointer: string,
): LongList | undefined {
  for (const [name, schema] of Object.entries(properties)) {
    const found = findLongList((value as Record<string, unknown>)[name], schema, `${pointer}/${name}`)
    if (found !== undefined) return found
  }
  return undefined
}

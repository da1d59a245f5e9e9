import type { TSchema } from 'typebox'

/**
 * The number of elements in a list of a request whose schema has no `maxItems`. Larger than the limits that
 * handlers check themselves (10,000 ids of a campaign), because their messages say what to do instead.
 */
export const elementsMax = 20_000

/** An object with more fields than this and its known ones is refused without naming them. */
const unknownFieldsMax = 1_000

/** A list or an object with more parts than its schema allows. `pointer` is a JSON pointer to it. */
export type LongList = Readonly<{ pointer: string; message: string }>

type ListSchema = Readonly<{
  type?: unknown
  maxItems?: number
  items?: TSchema
  properties?: Readonly<Record<string, TSchema>>
  additionalProperties?: unknown
  anyOf?: readonly TSchema[]
}>

/**
 * Finds a list that is too long, or an object with too many unknown fields, without looking at their parts.
 * The validator checks all parts before it compares their number, and describes each wrong one.
 */
export function findLongList(value: unknown, schema: TSchema, pointer = ''): LongList | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { type, maxItems = elementsMax, items, anyOf = [] } = schema as ListSchema
  for (const alternative of anyOf) {
    const found = findLongList(value, alternative, pointer)
    if (found !== undefined) return found
  }
  if (!Array.isArray(value)) return findInFields(value, schema, pointer)
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

function hasTooManyFields(value: object, properties: Readonly<Record<string, TSchema>>): boolean {
  const fieldsMax = Object.keys(properties).length + unknownFieldsMax
  let fields = 0
  // Counting ends at the limit, and creates no list of the names.
  for (const _name in value) if (++fields > fieldsMax) return true
  return false
}

function findInFields(value: object, schema: TSchema, pointer: string): LongList | undefined {
  const { properties = {}, additionalProperties } = schema as ListSchema
  if (additionalProperties === false && hasTooManyFields(value, properties)) {
    return { pointer, message: `has more than ${unknownFieldsMax} unknown fields` }
  }
  for (const [name, field] of Object.entries(properties)) {
    const found = findLongList((value as Record<string, unknown>)[name], field, `${pointer}/${name}`)
    if (found !== undefined) return found
  }
  return undefined
}

/**
 * Facts about schemas that only the OpenAPI document has. Validation and serialization do not see them, so
 * that a better document changes neither error messages nor speed.
 */
import type { TSchema } from 'typebox'

/** A symbol: copies of a schema keep it, and code that reads the keywords of a schema skips it. */
const annotations = Symbol('openapi')

export type Annotations = Readonly<{
  /** Name of the component that contains the schema. */
  name?: string
  /** A value has exactly one of these properties. */
  exactlyOneOf?: readonly string[]
  /** Keywords that the document shows, but that are not validated. */
  keywords?: Readonly<Record<string, unknown>>
}>

/** Names a schema: the document contains it once, and refers to it. */
export function component<S extends TSchema>(name: string, schema: S): S {
  return annotate(schema, { name })
}

/** Marks an object that has exactly one of some optional properties. The handler checks it. */
export function exactlyOneOf<S extends TSchema>(names: readonly string[], schema: S): S {
  return annotate(schema, { exactlyOneOf: names })
}

/** Adds keywords for readers, such as `format` for a text whose content the handler checks. */
export function describedWith<S extends TSchema>(keywords: Readonly<Record<string, unknown>>, schema: S): S {
  return annotate(schema, { keywords })
}

export function readAnnotations(schema: object): Annotations {
  return (schema as { [annotations]?: Annotations })[annotations] ?? {}
}

function annotate<S extends TSchema>(schema: S, more: Annotations): S {
  return Object.assign(schema, { [annotations]: { ...readAnnotations(schema), ...more } })
}

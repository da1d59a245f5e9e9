import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import type { TLocalizedValidationError } from 'typebox/error'
import { Settings } from 'typebox/system'
import { Value } from 'typebox/value'
import { findNearest } from '../../../find-nearest.ts'
import { type FieldFault, InvalidRequest } from './invalid-request.ts'
import { findLongList } from './long-lists.ts'
import { mergeUnionErrors } from './union-errors.ts'
import { findUnstorableText } from './unstorable-text.ts'

/** The part of a request that a schema describes, named as in Fastify. */
export type RequestPart = 'body' | 'querystring' | 'params' | 'headers'

export type Checked = { value: unknown } | { error: Error }

const partNames: Readonly<Record<RequestPart, string>> = {
  body: 'body',
  querystring: 'query',
  params: 'path',
  headers: 'header',
}

// More faults would not help the caller, and a hostile body can contain a fault per byte.
const faultsMax = 8
const errorsMax = 100
// The validator keeps this number of errors.
Settings.Set({ maxErrors: errorsMax })

/**
 * Compiles the validation of one part of a request.
 *
 * Text from a URL or a header is converted to the number or boolean that its schema requires. Values in a
 * body already have types, so they are never converted. Texts that a store cannot keep are refused
 * everywhere.
 */
export function compileCheck(schema: TSchema, part: RequestPart): (value: unknown) => Checked {
  const check = Compile(schema)
  const known = listFieldPaths(schema)
  const integers = listIntegerFields(schema)
  return (given) => {
    const long = part === 'body' ? findLongList(given, schema) : undefined
    if (long !== undefined) return refuseField(part, long)
    const value = part === 'body' ? given : convertTexts(schema, integers, given)
    if (!check.Check(value)) {
      return { error: new InvalidRequest(toFieldFaults(check.Errors(value), part, schema, known)) }
    }
    const odd = findUnstorableText(value, schema)
    return odd === undefined ? { value } : refuseField(part, odd)
  }
}

function refuseField(
  part: RequestPart,
  { pointer, message }: Readonly<{ pointer: string; message: string }>,
): Checked {
  const field = partNames[part] + formatFieldPath(pointer)
  return { error: new InvalidRequest([{ field, message }]) }
}

/** Keeps texts that are not integers: the library would convert `1.5` and `true` to 1. */
function convertTexts(schema: TSchema, integers: readonly string[], given: unknown): unknown {
  const texts = given as Readonly<Record<string, unknown>>
  const odd = integers.filter((name) => typeof texts[name] === 'string' && !wholeNumber.test(texts[name]))
  const kept = odd.map((name) => [name, texts[name]])
  const value = Value.Convert(schema, Value.Default(schema, given))
  return kept.length === 0 ? value : { ...(value as object), ...Object.fromEntries(kept) }
}

const wholeNumber = /^[+-]?\d+$/

function listIntegerFields(schema: TSchema): string[] {
  const { properties = {} } = schema as { properties?: Readonly<Record<string, { type?: unknown }>> }
  return Object.keys(properties).filter((name) => properties[name]?.type === 'integer')
}

function toFieldFaults(
  errors: readonly TLocalizedValidationError[],
  part: RequestPart,
  schema: TSchema,
  known: readonly string[],
): FieldFault[] {
  const settled = mergeUnionErrors(errors.slice(0, errorsMax), schema) as readonly TLocalizedValidationError[]
  const faults = settled.flatMap((error) => toFaultsOfError(error, partNames[part], known))
  return (faults.length > 0 ? faults : listUnknownFields(errors, partNames[part])).slice(0, faultsMax)
}

/** With many unknown fields, the validator reports each of them but not the error that lists their names. */
function listUnknownFields(errors: readonly TLocalizedValidationError[], part: string): FieldFault[] {
  return errors
    .filter(({ keyword }) => keyword === 'boolean')
    .map(({ instancePath }) => ({ field: part + formatFieldPath(instancePath), message: 'is not known' }))
}

function toFaultsOfError(
  error: TLocalizedValidationError,
  part: string,
  known: readonly string[],
): FieldFault[] {
  const at = part + formatFieldPath(error.instancePath)
  switch (error.keyword) {
    case 'boolean':
      // Always accompanied by an `additionalProperties` error, which names the field.
      return []
    case 'required':
      return error.params.requiredProperties.map((name) => ({
        field: `${at}.${name}`,
        message: 'is required',
      }))
    case 'additionalProperties':
      return error.params.additionalProperties.slice(0, faultsMax).map((name) => ({
        field: `${at}.${shortenName(name)}`,
        message: `is not known${suggestField(name, part, known)}`,
      }))
    case 'enum':
      return [{ field: at, message: `must be one of ${error.params.allowedValues.join(', ')}` }]
    case 'pattern':
      return [{ field: at, message: error.params.pattern === '\\S' ? 'must not be blank' : error.message }]
    default:
      return [{ field: at, message: error.message }]
  }
}

/** A name from the request can have millions of characters. */
function shortenName(name: string): string {
  return name.length > comparedMax ? `${name.slice(0, comparedMax)}…` : name
}

/** Longer names are not typing errors, and would take long to compare. */
const comparedMax = 100

/**
 * Suggests a field with the same name elsewhere in the request, or else the field with the most similar name.
 */
function suggestField(name: string, part: string, known: readonly string[]): string {
  if (name.length > comparedMax) return ''
  const names = known.map(readLastStep)
  const meant = names.includes(name) ? name : findNearest(name, names)
  return meant === undefined ? '' : `; did you mean ${part}${known[names.indexOf(meant)]}?`
}

function readLastStep(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1)
}

const fieldDepthMax = 6

/** Lists the paths of all fields of a schema: `.items[].kind`. */
function listFieldPaths(schema: unknown, at = '', depth = 0): string[] {
  if (typeof schema !== 'object' || schema === null || depth > fieldDepthMax) return []
  const {
    properties = {},
    items,
    anyOf = [],
  } = schema as Partial<{
    properties: Readonly<Record<string, unknown>>
    items: unknown
    anyOf: readonly unknown[]
  }>
  const fields = Object.entries(properties).flatMap(([name, field]) => [
    `${at}.${name}`,
    ...listFieldPaths(field, `${at}.${name}`, depth + 1),
  ])
  return [
    ...fields,
    ...listFieldPaths(items, `${at}[]`, depth + 1),
    ...anyOf.flatMap((each) => listFieldPaths(each, at, depth + 1)),
  ]
}

/** `/items/3/a~1b` → `.items[3].a/b` */
function formatFieldPath(pointer: string): string {
  if (pointer === '') return ''
  return pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${shortenName(step)}`))
    .join('')
}

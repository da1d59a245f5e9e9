import type { TSchema } from 'typebox'
import type { TLocalizedValidationError } from 'typebox/error'

export type Fault = Readonly<
  Pick<TLocalizedValidationError, 'keyword' | 'schemaPath' | 'instancePath' | 'message'>
> &
  Readonly<{ params: object }>

/**
 * Reduces the faults of a union (`anyOf`) to the relevant ones. The validator reports the faults of every
 * alternative and one more for the union. If the value has the type of one alternative, only the faults of
 * that alternative remain; otherwise a single fault lists the types that are allowed.
 */
export function mergeUnionErrors<F extends Fault>(
  faults: readonly F[],
  schema: TSchema,
): readonly (F | Fault)[] {
  const unions = faults.filter(({ keyword }) => keyword === 'anyOf')
  const outermost = unions.filter((union) => !unions.some((other) => isWithin(other, union)))
  return faults.flatMap((fault): readonly (F | Fault)[] => {
    if (outermost.includes(fault)) return mergeOneUnion(fault, faults, schema)
    return outermost.some((union) => isWithin(union, fault)) ? [] : [fault]
  })
}

function mergeOneUnion<F extends Fault>(
  union: F,
  faults: readonly F[],
  schema: TSchema,
): readonly (F | Fault)[] {
  const own = faults.filter((fault) => isWithin(union, fault))
  const alternatives = [...Map.groupBy(own, (fault) => toAlternativePath(union, fault))]
  const isOtherType = (fault: F): boolean =>
    (fault.keyword === 'type' || fault.keyword === 'const') && fault.instancePath === union.instancePath
  const sameType = alternatives.find(([, found]) => !found.some(isOtherType))
  if (sameType !== undefined) return mergeUnionErrors(sameType[1], schema)
  const types = alternatives.map(([path]) => describeType(findSchema(schema, path)))
  return [{ ...union, keyword: 'anyOf', message: `must be ${[...new Set(types)].join(' or ')}` }]
}

function isWithin(union: Fault, fault: Fault): boolean {
  const { instancePath } = union
  const isSameValue = fault.instancePath === instancePath || fault.instancePath.startsWith(`${instancePath}/`)
  return isSameValue && fault.schemaPath.startsWith(`${union.schemaPath}/anyOf/`)
}

/** `#/properties/a/anyOf/0/items` → `#/properties/a/anyOf/0` */
function toAlternativePath(union: Fault, fault: Fault): string {
  const start = `${union.schemaPath}/anyOf/`
  return start + fault.schemaPath.slice(start.length).split('/', 1)[0]
}

function findSchema(schema: TSchema, path: string): Readonly<Record<string, unknown>> {
  let part: unknown = schema
  for (const step of path.split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    part = typeof part === 'object' && part !== null ? (part as Record<string, unknown>)[key] : undefined
  }
  return typeof part === 'object' && part !== null ? (part as Record<string, unknown>) : {}
}

function describeType({ title, type, const: only }: Readonly<Record<string, unknown>>): string {
  return String(title ?? (only === undefined ? type : JSON.stringify(only)) ?? 'another type')
}

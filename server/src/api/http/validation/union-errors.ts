import type { TSchema } from 'typebox'
import type { TLocalizedValidationError } from 'typebox/error'

export type Fault = Readonly<
  Pick<TLocalizedValidationError, 'keyword' | 'schemaPath' | 'instancePath' | 'message'>
> &
  Readonly<{ params: object }>

/**
 * What is wrong with a value that may be one of several kinds, said once. Of a kind that it is, what is wrong with
 * it; else which kinds it may be. The check tells the faults of every kind, and one more for all of them.
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
  const kinds = [...Map.groupBy(own, (fault) => kindPath(union, fault))]
  const isOther = (fault: F): boolean =>
    (fault.keyword === 'type' || fault.keyword === 'const') && fault.instancePath === union.instancePath
  const same = kinds.find(([, found]) => !found.some(isOther))
  if (same !== undefined) return mergeUnionErrors(same[1], schema)
  const names = kinds.map(([path]) => describeKind(findSchema(schema, path)))
  return [{ ...union, keyword: 'anyOf', message: `must be ${[...new Set(names)].join(' or ')}` }]
}

function isWithin(union: Fault, fault: Fault): boolean {
  const { instancePath: place } = union
  const isThere = fault.instancePath === place || fault.instancePath.startsWith(`${place}/`)
  return isThere && fault.schemaPath.startsWith(`${union.schemaPath}/anyOf/`)
}

/** `#/properties/a/anyOf/0/items` → `#/properties/a/anyOf/0` */
function kindPath(union: Fault, fault: Fault): string {
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

function describeKind({ title, type, const: only }: Readonly<Record<string, unknown>>): string {
  return String(title ?? (only === undefined ? type : JSON.stringify(only)) ?? 'another kind')
}

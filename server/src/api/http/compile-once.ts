/**
 * Serializers and validators are compiled at their first use, and once per process. Compiling all of them
 * takes longer than the rest of the start of a server, and most servers use few of them.
 */
import fastJsonStringify from 'fast-json-stringify'
import type { TSchema } from 'typebox'
import { type Checked, compileCheck, type RequestPart } from './validation/validate.ts'

type Serialize = (value: unknown) => string
type Check = (value: unknown) => Checked

const serializers = new WeakMap<object, Serialize>()
const checks: Readonly<Record<RequestPart, WeakMap<object, Check>>> = {
  body: new WeakMap(),
  querystring: new WeakMap(),
  params: new WeakMap(),
  headers: new WeakMap(),
}

/** Returns the function that writes values of this schema as JSON. */
export function getSerializer(schema: object): Serialize {
  return getOrCreate(serializers, schema, () =>
    compileAtFirstCall<Serialize>(() => fastJsonStringify(schema as never)),
  )
}

/** Returns the validation of one part of a request. */
export function getCheck(schema: TSchema, part: RequestPart): Check {
  return getOrCreate(checks[part], schema, () => compileAtFirstCall<Check>(() => compileCheck(schema, part)))
}

function getOrCreate<T>(cache: WeakMap<object, T>, key: object, create: () => T): T {
  const known = cache.get(key)
  if (known !== undefined) return known
  const created = create()
  cache.set(key, created)
  return created
}

function compileAtFirstCall<F extends (value: unknown) => unknown>(compile: () => F): F {
  let compiled: F | undefined
  return ((value) => {
    compiled ??= compile()
    return compiled(value)
  }) as F
}

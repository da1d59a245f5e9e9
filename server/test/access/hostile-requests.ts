/**
 * Random hostile requests, generated from the route list: for each route a request that its schemas allow as
 * far as possible, in which some texts are replaced by hostile ones.
 */
import type { TSchema } from 'typebox'
import type { Route } from '../../src/api/http/route.ts'
import type { SeededRandom } from '../seeded-random.ts'

export type HostileRequest = Readonly<{
  method: string
  /** As it is sent: not normalised. */
  path: string
  headers: Readonly<Record<string, string>>
  body: string | undefined
}>

/** Texts that would do harm if a part of the server put them into SQL, a header, a path or a pattern. */
export const hostileTexts: readonly string[] = [
  "' or 1=1 --",
  "'; drop table items; --",
  '"; drop schema redrive cascade; --',
  "x' union select hash from api_keys --",
  '$1',
  '?1',
  '%s%s%n',
  "\\'; select pg_sleep(10); --",
  '$' + '{process.env.HOME}',
  '{{constructor.constructor("return process")()}}',
  '__proto__',
  'constructor',
  'x\r\nSet-Cookie: redrive_session=evil',
  'x\nX-Evil: 1',
  'x\u0000y',
  '\ud800',
  '..',
  '../../../../etc/passwd',
  '..%2f..%2fetc%2fpasswd',
  '%2e%2e%2f',
  '%00',
  '<script>alert(1)</script>',
  '-1',
  '1e400',
  '9223372036854775808',
  'NaN',
  '\u202e\u0000\ufeff',
  'é'.repeat(300),
  'a'.repeat(5_000),
  '(a+)+$',
  '2hZr9S0aX1cVbNmLkJhGfDsAqWe',
  '2026-13-45T99:99:99Z',
  '99999999999999999999h',
  '',
  ' ',
  '*',
  '~',
  ':',
]

const hostileValues: readonly unknown[] = [
  null,
  -1,
  0.5,
  2 ** 53,
  1e308,
  true,
  [],
  {},
  [null],
  { __proto__: null, toString: 'x' },
  [['x']],
]

export function createHostileRequest(row: Route, random: SeededRandom): HostileRequest {
  const path = row.path.replaceAll(/\{(\w+)\}/g, () => encodePart(random.pick(hostileTexts), random))
  const query = row.method === 'GET' || random.next() < 0.2 ? createQuery(row, random) : ''
  const hasBody = row.method !== 'GET'
  return {
    method: row.method,
    path: cleanTarget(path + query),
    headers: createHeaders(row, hasBody, random),
    body: hasBody ? createBody(row, random) : undefined,
  }
}

/** A request line cannot have these characters: a client could not send them. */
function cleanTarget(path: string): string {
  return path.replaceAll(/[^\x21-\x7e]/g, (character) => encodeURIComponent(character.toWellFormed()))
}

function encodePart(text: string, random: SeededRandom): string {
  const once = encodeURIComponent(text.toWellFormed())
  return random.pick([once, once, once, encodeURIComponent(once), text.replaceAll(/[/?#]/g, '%2F')])
}

function createQuery(row: Route, random: SeededRandom): string {
  const names = Object.keys((row.schema.querystring as { properties?: object } | undefined)?.properties ?? {})
  const chosen = [
    ...names.filter(() => random.next() < 0.3),
    ...(random.next() < 0.1 ? ['no_such_name'] : []),
  ]
  const pairs = chosen.map((name) => `${name}=${encodePart(random.pick(hostileTexts), random)}`)
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

function createHeaders(row: Route, hasBody: boolean, random: SeededRandom): Record<string, string> {
  const names = Object.keys((row.openapi?.headers as { properties?: object } | undefined)?.properties ?? {})
  const optional = ['X-Request-ID', 'X-Forwarded-For', 'Forwarded', 'traceparent', 'If-None-Match', 'Accept']
  const own = [...names, ...optional].filter(() => random.next() < 0.3)
  const pairs = own.map((name) => [name, toHeaderValue(random.pick(hostileTexts))])
  return {
    ...Object.fromEntries(pairs),
    ...(hasBody && { 'content-type': random.next() < 0.9 ? 'application/json' : 'text/plain; charset=x' }),
  }
}

/** Node refuses to send other characters in a header. */
function toHeaderValue(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '.')
}

function createBody(row: Route, random: SeededRandom): string {
  const schema = row.schema.body ?? findBodySchema(row)
  const body = schema === undefined ? createAny(random) : createValue(schema, random, 0)
  const text = JSON.stringify(body) ?? 'null'
  return random.next() < 0.03 ? text.slice(0, -1) : text
}

/** Routes that read their body themselves describe it for OpenAPI. */
function findBodySchema(row: Route): TSchema | undefined {
  return Object.values(row.openapi?.body?.content ?? {})[0]?.schema
}

function createAny(random: SeededRandom): unknown {
  return random.next() < 0.5 ? random.pick(hostileTexts) : random.pick(hostileValues)
}

const depthMax = 6

type AnySchema = Readonly<{
  type?: string
  anyOf?: readonly TSchema[]
  oneOf?: readonly TSchema[]
  enum?: readonly unknown[]
  const?: unknown
  properties?: Readonly<Record<string, TSchema>>
  required?: readonly string[]
  items?: TSchema
}>

/** A value that the schema allows or nearly allows. */
function createValue(given: TSchema, random: SeededRandom, depth: number): unknown {
  if (random.next() < 0.03) return random.pick(hostileValues)
  const schema = given as AnySchema
  const alternatives = schema.anyOf ?? schema.oneOf
  if (alternatives !== undefined) return createValue(random.pick(alternatives), random, depth)
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return random.next() < 0.9 ? random.pick(schema.enum) : createAny(random)
  if (schema.properties !== undefined) return createObject(schema, random, depth)
  switch (schema.type) {
    case 'array':
      return depth > depthMax || schema.items === undefined
        ? []
        : Array.from({ length: random.below(3) }, () =>
            createValue(schema.items as TSchema, random, depth + 1),
          )
    case 'integer':
    case 'number':
      return random.pick([0, 1, 2, 100, -1, 2 ** 31, 2 ** 53, 1.5])
    case 'boolean':
      return random.next() < 0.5
    case 'null':
      return null
    default:
      return random.pick(hostileTexts)
  }
}

function createObject(schema: AnySchema, random: SeededRandom, depth: number): unknown {
  const required = new Set(schema.required ?? [])
  const fields = Object.entries(schema.properties ?? {}).filter(
    ([name]) => depth <= depthMax && (random.next() < 0.3 || (required.has(name) && random.next() < 0.97)),
  )
  return Object.fromEntries(fields.map(([name, field]) => [name, createValue(field, random, depth + 1)]))
}

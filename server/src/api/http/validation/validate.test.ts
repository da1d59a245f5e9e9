import { Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { InvalidRequest } from './invalid-request.ts'
import { elementsMax } from './long-lists.ts'
import { compileCheck, type RequestPart } from './validate.ts'

const Item = Type.Object({ kind: Type.String({ maxLength: 3 }) }, { additionalProperties: false })
const Body = Type.Object(
  {
    count: Type.Integer({ minimum: 1 }),
    mode: Type.Optional(Type.Enum(['fast', 'safe'])),
    items: Type.Optional(Type.Array(Item)),
  },
  { additionalProperties: false },
)
const Query = Type.Object(
  {
    limit: Type.Integer({ minimum: 1, maximum: 1000, default: 100 }),
    isPaused: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)

function faults(schema: Parameters<typeof compileCheck>[0], part: RequestPart, value: unknown) {
  const checked = compileCheck(schema, part)(value)
  return 'error' in checked && checked.error instanceof InvalidRequest ? checked.error.faults : checked
}

describe('request validation', () => {
  it('each fault has the path of its field and the violated rule', () => {
    expect(
      faults(Body, 'body', { mode: 'slow', items: [{ kind: 'a' }, { kind: 'abcd', 'x/y': 1 }] }),
    ).toEqual([
      { field: 'body.count', message: 'is required' },
      { field: 'body.mode', message: 'must be one of fast, safe' },
      { field: 'body.items[1].x/y', message: 'is not known' },
      { field: 'body.items[1].kind', message: 'must not have more than 3 characters' },
    ])
    expect(faults(Body, 'body', { count: 0 })).toEqual([{ field: 'body.count', message: 'must be >= 1' }])
  })

  it('a list that is too long is refused before its elements are looked at', () => {
    let looked = 0
    const element = {
      get kind() {
        looked++
        return 3
      },
    }
    const items = new Array(elementsMax + 1).fill(element)
    expect(faults(Body, 'body', { count: 1, items })).toEqual([
      { field: 'body.items', message: `has ${elementsMax + 1} entries; at most ${elementsMax} are allowed` },
    ])
    const Limited = Type.Object({ ids: Type.Union([Type.Array(Item, { maxItems: 2 }), Type.Null()]) })
    expect(faults(Limited, 'body', { ids: [element, element, element] })).toEqual([
      { field: 'body.ids', message: 'has 3 entries; at most 2 are allowed' },
    ])
    expect(looked).toBe(0)
  })

  it('an object with too many unknown fields is refused before they are looked at', () => {
    let looked = 0
    const fields = Object.fromEntries(Array.from({ length: 1_100 }, (_, number) => [`field${number}`, 1]))
    Object.defineProperty(fields, 'field0', { enumerable: true, get: () => looked++ })
    expect(faults(Body, 'body', { count: 1, ...fields })).toEqual([
      { field: 'body', message: 'has more than 1000 unknown fields' },
    ])
    looked = 0
    expect(faults(Body, 'body', fields)).toEqual([
      { field: 'body', message: 'has more than 1000 unknown fields' },
    ])
    expect(faults(Body, 'body', { count: 1, items: [fields] })).toEqual([
      { field: 'body.items[0]', message: 'has more than 1000 unknown fields' },
    ])
    expect(looked).toBe(0)
  })

  it('the validator keeps a limited number of errors', () => {
    const check = Compile(Type.Array(Type.Integer()))
    expect(check.Errors(new Array(5_000).fill('x'))).toHaveLength(100)
  })

  it('a request with many unknown fields gets a fault for the first of them, with shortened names', () => {
    const wide = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, at) => [`${at}`.padEnd(10_000, '-'), 1]),
    )
    const found = faults(Body, 'body', { count: 1, ...wide })
    expect(found).toHaveLength(8)
    expect(JSON.stringify(found).length).toBeLessThan(2_000)
  })

  describe('of a union', () => {
    const Time = Type.String({ title: 'a time', maxLength: 5 })
    const Mixed = Type.Object({
      at: Type.Optional(Type.Union([Time, Type.Null()])),
      ids: Type.Optional(
        Type.Union([Type.Array(Type.String({ maxLength: 2 }), { minItems: 1 }), Type.Null()]),
      ),
      list: Type.Optional(Type.Array(Type.Union([Type.String(), Type.Null()]))),
      letter: Type.Optional(Type.Union([Type.Literal('a'), Type.Literal('b'), Type.Null()])),
      deep: Type.Optional(Type.Union([Type.Null(), Type.Object({ x: Type.Union([Time, Type.Integer()]) })])),
    })
    it.each([
      [{ at: 3 }, 'body.at', 'must be a time or null'],
      [{ at: 'too long' }, 'body.at', 'must not have more than 5 characters'],
      [{ ids: 'a' }, 'body.ids', 'must be array or null'],
      [{ ids: [] }, 'body.ids', 'must not have fewer than 1 items'],
      [{ ids: ['a', 3] }, 'body.ids[1]', 'must be string'],
      [{ list: ['a', 3] }, 'body.list[1]', 'must be string or null'],
      [{ letter: 'c' }, 'body.letter', 'must be "a" or "b" or null'],
      [{ deep: { x: true } }, 'body.deep.x', 'must be a time or integer'],
    ])('%j violates a union, which is reported as a single fault', (value, field, message) => {
      expect(faults(Mixed, 'body', value)).toEqual([{ field, message }])
    })
  })

  it('for an unknown field, a field with the same or a similar name is suggested', () => {
    const policy = Type.Object({ dead_queue: Type.String() }, { additionalProperties: false })
    const Nested = Type.Object(
      { policy: Type.Optional(policy), rules: Type.Optional(Type.Array(policy)) },
      { additionalProperties: false },
    )
    const found = (value: unknown) => faults(Nested, 'body', value)
    expect(found({ dead_queue: 'x' })).toEqual([
      { field: 'body.dead_queue', message: 'is not known; did you mean body.policy.dead_queue?' },
    ])
    expect(found({ polcy: {} })).toEqual([
      { field: 'body.polcy', message: 'is not known; did you mean body.policy?' },
    ])
    expect(found({ x: 1 })).toEqual([{ field: 'body.x', message: 'is not known' }])
  })

  it('a blank text is reported as blank if its schema requires a visible character', () => {
    const Reason = Type.Object({ reason: Type.String({ pattern: '\\S' }) })
    expect(faults(Reason, 'body', { reason: ' ' })).toEqual([
      { field: 'body.reason', message: 'must not be blank' },
    ])
  })

  it('query texts are converted to the types of the schema, and defaults are added', () => {
    expect(compileCheck(Query, 'querystring')({ limit: '7', isPaused: 'true' })).toEqual({
      value: { limit: 7, isPaused: true },
    })
    expect(compileCheck(Query, 'querystring')(Object.create(null))).toEqual({ value: { limit: 100 } })
    expect(faults(Query, 'querystring', { limit: '1001' })).toEqual([
      { field: 'query.limit', message: 'must be <= 1000' },
    ])
    expect(faults(Query, 'querystring', { limit: 'many', x: '1' })).toEqual([
      { field: 'query.x', message: 'is not known' },
      { field: 'query.limit', message: 'must be integer' },
    ])
  })

  it.each(['1.5', 'true', '', ' 7', '0x10', '1e3'])('%j is not accepted as an integer', (limit) => {
    expect(faults(Query, 'querystring', { limit })).toEqual([
      { field: 'query.limit', message: 'must be integer' },
    ])
  })

  it('values in a body are never converted', () => {
    expect(faults(Body, 'body', { count: '1' })).toEqual([
      { field: 'body.count', message: 'must be integer' },
    ])
  })

  it.each([undefined, null, 'text', 3, []])('%j is refused if the schema requires an object', (value) => {
    expect(faults(Body, 'body', value)).toEqual([{ field: 'body', message: 'must be object' }])
  })

  it('a field named __proto__ is refused as unknown', () => {
    const poisoned = JSON.parse('{"count":1,"__proto__":{"isAdmin":true}}')
    expect(faults(Body, 'body', poisoned)).toEqual([{ field: 'body.__proto__', message: 'is not known' }])
  })

  it('a request with many faults reports only the first 8', () => {
    const items = Array.from({ length: 10_000 }, () => ({ kind: 'too long' }))
    expect(faults(Body, 'body', { count: 1, items })).toHaveLength(8)
  })
})

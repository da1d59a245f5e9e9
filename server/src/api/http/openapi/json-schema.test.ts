import { Type } from 'typebox'
import { describe, expect, it } from 'vitest'
import { component, describedWith, exactlyOneOf } from './annotations.ts'
import { createSchemaWriter } from './json-schema.ts'

const write = (schema: object) => createSchemaWriter().write(schema)

describe('schemas in OpenAPI', () => {
  it('a tuple is written with prefixItems', () => {
    expect(write(Type.Tuple([Type.String(), Type.Integer()]))).toEqual({
      type: 'array',
      prefixItems: [{ type: 'string' }, { type: 'integer' }],
      items: false,
      minItems: 2,
    })
  })

  it('alternatives, records and enums are written with the keywords that generators know', () => {
    expect(write(Type.Union([Type.String(), Type.Null()]))).toEqual({
      oneOf: [{ type: 'string' }, { type: 'null' }],
    })
    expect(write(Type.Record(Type.String(), Type.Integer()))).toEqual({
      type: 'object',
      additionalProperties: { type: 'integer' },
    })
    expect(write(Type.Enum(['a', 'b']))).toEqual({ type: 'string', enum: ['a', 'b'] })
  })

  it('a named schema is written once, and each use refers to it', () => {
    const Point = component('Point', Type.Object({ x: Type.Integer() }, { description: 'A point.' }))
    const writer = createSchemaWriter()
    const from = writer.write(Type.Object({ from: Point, to: Type.Optional(Point) }))
    expect(from).toMatchObject({ properties: { from: { $ref: '#/components/schemas/Point' } } })
    expect(writer.write({ ...Point, description: 'Its end.' })).toEqual({
      $ref: '#/components/schemas/Point',
      description: 'Its end.',
    })
    expect(Object.keys(writer.listComponents())).toEqual(['Point'])
  })

  it('two different schemas with one name are refused', () => {
    const writer = createSchemaWriter()
    writer.write(component('Point', Type.Object({ x: Type.Integer() })))
    expect(() => writer.write(component('Point', Type.Object({ y: Type.Integer() })))).toThrow(
      'two different schemas have the name Point',
    )
  })

  it('a choice of properties is one component per property', () => {
    const fields = {
      by_id: Type.Optional(Type.String()),
      all: Type.Optional(Type.Boolean()),
      n: Type.Integer(),
    }
    const writer = createSchemaWriter()
    writer.write(component('Pick', exactlyOneOf(['by_id', 'all'], Type.Object(fields))))
    expect(writer.listComponents()).toEqual({
      Pick: {
        oneOf: [{ $ref: '#/components/schemas/PickWithById' }, { $ref: '#/components/schemas/PickWithAll' }],
      },
      PickWithById: {
        type: 'object',
        required: ['n', 'by_id'],
        properties: { by_id: { type: 'string' }, n: { type: 'integer' } },
      },
      PickWithAll: {
        type: 'object',
        required: ['n', 'all'],
        properties: { all: { type: 'boolean' }, n: { type: 'integer' } },
      },
    })
  })

  it('keywords for readers are in the document and not in the schema that is validated', () => {
    const At = describedWith({ format: 'date-time' }, Type.String())
    expect(write(At)).toEqual({ type: 'string', format: 'date-time' })
    expect(Object.keys(At)).not.toContain('format')
  })
})

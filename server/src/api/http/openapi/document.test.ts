import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { errorCodes } from '../../../errors.ts'
import { routes } from '../../routes.ts'
import { createOpenapi } from './document.ts'
import type { JsonSchema } from './json-schema.ts'

type Content = Readonly<Record<string, { schema: JsonSchema }>>
type Response = Readonly<{ description: string; content?: Content; 'x-error-codes'?: readonly string[] }>
type Operation = Readonly<{
  operationId: string
  summary: string
  description: string
  tags: readonly string[]
  parameters: readonly { description?: string; in: string; name: string }[]
  requestBody?: { content: Content }
  responses: Readonly<Record<string, Response>>
}>
type Document = Readonly<{
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  components: { schemas: Readonly<Record<string, JsonSchema>> }
}>

const document = JSON.parse(JSON.stringify(createOpenapi(routes, '1.2.3'))) as Document
const { schemas } = document.components
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    ...operation,
    name: `${method.toUpperCase()} ${path}`,
  })),
)
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })

/** Visits every value of a JSON document. */
function visit(value: unknown, look: (object: JsonSchema) => void): void {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) look(value as JsonSchema)
  for (const part of Object.values(value)) visit(part, look)
}

function listRefs(value: unknown): string[] {
  const refs: string[] = []
  visit(value, ({ $ref }) => {
    if (typeof $ref === 'string') refs.push($ref)
  })
  return refs
}

function requestSchema(path: string, method = 'post'): JsonSchema {
  const [{ schema } = { schema: {} }] = Object.values(
    document.paths[path]?.[method]?.requestBody?.content ?? {},
  )
  return resolve(schema)
}

function resolve(schema: JsonSchema): JsonSchema {
  return typeof schema.$ref === 'string' ? (schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}) : schema
}

describe('the OpenAPI document', () => {
  it('the document is valid OpenAPI 3.1 by the schema of the OpenAPI Initiative', () => {
    const file = new URL('../../../../test/fixtures/openapi/openapi-3.1.schema.json', import.meta.url)
    const validate = ajv.compile(JSON.parse(readFileSync(file, 'utf8')))
    validate(document)
    expect(validate.errors ?? []).toEqual([])
    // The schema can fail.
    expect(validate({ ...document, info: { title: 'no version' } })).toBe(false)
  })

  it('every schema is valid JSON Schema 2020-12, without tuples of older drafts', () => {
    const all = [
      ...Object.values(schemas),
      ...operations.flatMap(({ parameters }) =>
        parameters.map((each) => (each as { schema?: object }).schema),
      ),
    ]
    for (const schema of all) expect(ajv.validateSchema(schema ?? false), ajv.errorsText()).toBe(true)
    visit(document, ({ items }) => expect(Array.isArray(items)).toBe(false))
  })

  it.each(operations.map((operation) => [operation.name, operation] as const))(
    '%s has texts, a schema for success, and its error codes',
    (_name, operation) => {
      expect(operation.operationId).toMatch(/^[a-z][A-Za-z]+$/)
      expect(operation.summary).toMatch(/^[A-Z].*\.$/)
      expect(operation.description.length).toBeGreaterThan(operation.summary.length)
      expect(operation.tags).toHaveLength(1)
      for (const parameter of operation.parameters) expect(parameter.description, parameter.name).toBeTruthy()
      const [status, success] = Object.entries(operation.responses).find(([key]) => key.startsWith('2')) ?? []
      // Answers 201, 202 and 204 have no body.
      if (status === '200') expect(Object.values(success?.content ?? {})[0]?.schema).toBeDefined()
      else expect([status, success?.content]).toEqual([expect.stringMatching(/^20[124]$/), undefined])
      const errors = Object.entries(operation.responses).filter(([, each]) => each['x-error-codes'])
      expect(errors.map(([status]) => status)).toEqual(expect.arrayContaining(['400', '403', '500']))
      for (const [, { content = {}, ...response }] of errors) {
        expect(response['x-error-codes']?.length).toBeGreaterThan(0)
        for (const code of response['x-error-codes'] ?? [])
          expect(response.description).toContain(`\`${code}\``)
        for (const { schema } of Object.values(content)) expect(schema.$ref).toBeDefined()
      }
    },
  )

  it('every operationId is used once', () => {
    const ids = operations.map(({ operationId }) => operationId)
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([])
  })

  it('every reference resolves, and every component is used', () => {
    const used = new Set(listRefs(document))
    const existing = Object.keys(schemas).map((name) => `#/components/schemas/${name}`)
    expect([...used].filter((ref) => !existing.includes(ref))).toEqual([])
    expect(existing.filter((ref) => !used.has(ref))).toEqual([])
  })

  it('every object in the body of a request or an answer has a name', () => {
    for (const { name, requestBody, responses } of operations) {
      for (const { content = {} } of [...(requestBody ? [requestBody] : []), ...Object.values(responses)]) {
        for (const { schema } of Object.values(content)) expect(schema.properties, name).toBeUndefined()
      }
    }
  })

  it('the codes of our own errors are codes of the catalogue, and those of a handler are listed', () => {
    const codes = operations
      .filter(({ name }) => /\/api\/v1\/(?!dlq)/.test(name))
      .flatMap(({ responses }) => Object.values(responses).flatMap((each) => each['x-error-codes'] ?? []))
    expect(errorCodes).toEqual(expect.arrayContaining(codes))
    const responses = document.paths['/api/v1/campaigns/{id}/resume']?.post?.responses ?? {}
    expect(responses['404']?.['x-error-codes']).toEqual(['CAMPAIGN_NOT_FOUND'])
    expect(responses['409']?.['x-error-codes']).toEqual(['CAMPAIGN_STATE', 'CAMPAIGN_CHANGED'])
  })

  it('the codes of other dialects are the codes on the wire', () => {
    const requeue = document.paths['/api/v1/dlq/requeue']?.post?.responses ?? {}
    expect(requeue['404']?.['x-error-codes']).toEqual(['NOT_FOUND'])
    expect(requeue['503']?.['x-error-codes']).toEqual(['DEPENDENCY_ERROR'])
    const retry = document.paths['/api/v1/dlq/messages/{id}/retry']?.post?.responses ?? {}
    expect(retry['409']?.['x-error-codes']).toEqual(['SYS_DLQ_CONFLICT'])
    const lease = document.paths['/v1/queue.lease']?.post?.responses ?? {}
    expect(lease['454']?.['x-error-codes']).toEqual(['454'])
  })

  it.each([
    ['/api/v1/campaigns', ['ids', 'filter', 'all']],
    ['/api/v1/campaigns/preview', ['ids', 'filter', 'all']],
    ['/api/v1/letters/restore', ['ids', 'filter', 'campaign_id']],
    ['/api/v1/letters/cancel-redrive', ['ids', 'campaign_id']],
    ['/api/v1/dlq/purge', ['ids', 'older_than']],
  ])('the body of %s has one alternative per selection', (path, choices) => {
    const alternatives = (requestSchema(path).oneOf as JsonSchema[]).map(resolve)
    const selections = alternatives.map(({ properties, required }) => [
      choices.filter((name) => Object.hasOwn(properties as object, name)),
      choices.filter((name) => (required as string[]).includes(name)),
    ])
    expect(selections).toEqual(choices.map((name) => [[name], [name]]))
  })

  it('texts with a time have a format, and fixed values are enums', () => {
    const letter = resolve({ $ref: '#/components/schemas/Letter' }).properties as Record<string, JsonSchema>
    expect(letter.updated_at).toMatchObject({ type: 'string', format: 'date-time' })
    expect(letter.status).toMatchObject({ type: 'string', enum: expect.arrayContaining(['PENDING', 'DEAD']) })
    const filter = resolve({ $ref: '#/components/schemas/LetterFilterSpec' }).properties as typeof letter
    expect(filter.dead_lettered_from).toMatchObject({ format: 'date-time' })
    expect(JSON.stringify(filter.status)).toContain('"enum":["PENDING"')
  })
})

import { describe, expect, it } from 'vitest'
import { routes } from '../../src/api/routes.ts'
import { startTestApi } from '../http/test-api.ts'
import { startTestServer } from '../http/test-server.ts'

type Operation = {
  operationId: string
  summary: string
  tags: string[]
  'x-permission': string
  security?: object[]
  parameters?: { name: string; in: string; required?: boolean; schema?: { default?: unknown } }[]
  requestBody?: { required: boolean; content: Record<string, unknown> }
  responses: Record<string, unknown>
}
type OpenApi = {
  openapi: string
  tags: { name: string }[]
  security: object[]
  components: { securitySchemes: Record<string, object> }
  paths: Record<string, Record<string, Operation>>
}

async function readOpenApi(): Promise<OpenApi> {
  const { url } = await startTestApi()
  const answer = await fetch(`${url}/openapi.json`)
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
  return (await answer.json()) as OpenApi
}

describe('the OpenAPI description', () => {
  it('the OpenAPI description has every route of the route table, and no other', async () => {
    const { openapi, paths } = await readOpenApi()
    expect(openapi).toBe('3.1.0')
    const described = Object.entries(paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    )
    expect(described.toSorted()).toEqual(routes.map((row) => `${row.method} ${row.path}`).toSorted())
  })

  it('each operation in the OpenAPI description has a summary, a permission and its parameters', async () => {
    const { paths, tags } = await readOpenApi()
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        path,
        method: method.toUpperCase(),
        operation,
      })),
    )
    for (const { path, method, operation } of operations) {
      expect(operation.summary).toMatch(/^[A-Z].*\.$/)
      expect(operation['x-permission']).toBe(
        routes.find((row) => row.path === path && row.method === method)?.permission,
      )
      expect(tags.map((tag) => tag.name)).toEqual(expect.arrayContaining(operation.tags))
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const named = operation.parameters?.filter((parameter) => parameter.in === 'path') ?? []
      expect(named.map((parameter) => parameter.name)).toEqual(inPath)
    }
  })

  it('the OpenAPI description lists protobuf for the Queue API and the error header of queue.retry', async () => {
    const { paths } = await readOpenApi()
    for (const [path, { post }] of Object.entries(paths).filter(([path]) => path.startsWith('/v1/'))) {
      const formats = Object.keys(post?.requestBody?.content ?? {})
      expect(formats, path).toEqual(['application/json', 'application/protobuf'])
    }
    expect(paths['/v1/queue.retry']?.post?.parameters).toMatchObject([
      { name: 'X-Redrive-Error', in: 'header', required: false },
    ])
  })

  it('each request body in the OpenAPI description has a media type that generators of clients know', async () => {
    const { paths } = await readOpenApi()
    const known = ['application/json', 'application/x-www-form-urlencoded', 'application/octet-stream']
    const bodies = Object.values(paths).flatMap((methods) =>
      Object.values(methods).flatMap(({ operationId, requestBody }) =>
        requestBody === undefined ? [] : [{ operationId, types: Object.keys(requestBody.content) }],
      ),
    )
    expect(bodies.length).toBeGreaterThan(50)
    expect(bodies.filter(({ types }) => !types.some((type) => known.includes(type)))).toEqual([])
  })

  it('the OpenAPI description names the credentials, and the operations that need none', async () => {
    const { paths, security, components } = await readOpenApi()
    expect(security).toEqual([{}, { bearer: [] }, { apiKey: [] }, { session: [] }])
    expect(components.securitySchemes).toMatchObject({ bearer: { scheme: 'bearer' } })
    expect(paths['/health']?.get?.security).toEqual([{}])
    const internal = [...security, { internalKey: [] }]
    expect(paths['/internal/v1/dlq']?.get?.security).toEqual(internal)
    expect(paths['/api/v1/queues']?.get).not.toHaveProperty('security')
  })

  it('the OpenAPI description marks optional request bodies', async () => {
    const { paths } = await readOpenApi()
    expect(paths['/api/v1/queues/{name}/pause']?.post?.requestBody?.required).toBe(false)
    expect(paths['/api/v1/queues']?.post?.requestBody?.required).toBe(true)
  })

  it('parameters with a default are optional in the OpenAPI description', async () => {
    const { paths } = await readOpenApi()
    const all = Object.values(paths).flatMap(({ get }) => get?.parameters ?? [])
    const defaulted = all.filter(({ schema }) => schema?.default !== undefined)
    expect(defaulted.length).toBeGreaterThan(20)
    expect(defaulted.filter(({ required }) => required === true)).toEqual([])
    const pathParameters = paths['/api/v1/letters/{id}']?.get?.parameters
    expect(pathParameters).toContainEqual(expect.objectContaining({ name: 'id', in: 'path', required: true }))
    expect(Object.keys(paths['/api/v1/campaigns/{id}/events']?.get?.responses ?? {})).toContain('204')
  })
})

describe('the metrics', () => {
  it('/metrics is valid Prometheus text in which every metric has its type', async () => {
    const { url } = await startTestServer()
    await fetch(`${url}/api/v1/queues`)
    await fetch(`${url}/nope/with/many/parts`)
    const answer = await fetch(`${url}/metrics`)
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
    const text = await answer.text()
    const described = new Set(
      [...text.matchAll(/^# TYPE (\S+) (?:counter|gauge|summary|histogram)$/gm)].map(([, n]) => n),
    )
    for (const line of text.split('\n').filter((part) => part !== '' && !part.startsWith('#'))) {
      const sample =
        /^([a-z_:][\w:]*)(?:\{(?:\w+="(?:[^"\\]|\\.)*",?)*\})? (?:-?[\d.e+-]+|NaN|[+-]Inf)$/i.exec(line)
      expect(sample, line).not.toBeNull()
      const name = sample?.[1] ?? ''
      expect(described.has(name) || described.has(name.replace(/_(?:sum|count|bucket)$/, '')), line).toBe(
        true,
      )
    }
    expect(text).toMatch(/^http_handler_duration\{quantile="0\.99",path="\/api\/v1\/queues"\} /m)
    expect(text).toMatch(/^http_handler_duration_count\{path="unmatched"\} 1$/m)
    expect(text).toMatch(/^redrive_store_up 1$/m)
    expect(text).toMatch(/^process_resident_memory_bytes \d/m)
  })
})

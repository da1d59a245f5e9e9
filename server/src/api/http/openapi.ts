import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'

const tags = [
  { name: 'server', description: 'This server.' },
  { name: 'queues', description: 'Queues, their policy and their counts.' },
  {
    name: 'letters',
    description: 'Dead letters: capture, find, look at, send back, give up. See docs/letters-api.md.',
  },
  { name: 'groups', description: 'Dead letters with one cause.' },
  { name: 'campaigns', description: 'A redrive or discard of many, with a frozen set and a report.' },
  { name: 'archive', description: 'Letters that left the live ones by retention.' },
  { name: 'audit', description: 'Who did what to which, when and why.' },
  { name: 'queue-api', description: 'The Queue API, in JSON and protobuf: docs/queue-api.md.' },
  {
    name: 'dlq',
    description: 'Dead letters as the management API and the topic API know them: docs/dlq-api.md.',
  },
  { name: 'watching', description: 'For monitoring: no credential needed.' },
  { name: 'pages', description: 'For people, and this description itself.' },
]

/** On the way to the plugin and back: the route can do without a body. */
export const optionalBodyKey = 'x-optional-body'

/** Describes the routes that are registered after it. */
export function describeApi(app: FastifyInstance, version: string): void {
  app.register(swagger, {
    // Else a named schema would appear as `def-0`.
    transform: ({ schema, url, route }) => ({
      schema: { ...schema, ...route.config?.row?.described } as typeof schema,
      url,
    }),
    transformObject: (document) => {
      if (!('openapiObject' in document)) throw new Error('this is not described as OpenAPI')
      for (const operations of Object.values(document.openapiObject.paths ?? {})) {
        for (const operation of Object.values(operations ?? {})) {
          markOptionalBody(operation as Described)
          markOptionalParameters(operation as Described)
        }
      }
      return document.openapiObject
    },
    refResolver: { buildLocalReference: (schema) => String(schema.$id) },
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Redrive',
        version,
        description:
          'Keeps every message that a system failed to process, shows why it failed, and brings it back.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      tags,
    },
  })
}

/** As JSON text, made once: it cannot change while the server runs. */
export function createOpenapiText(app: FastifyInstance): () => string {
  let text: string | undefined
  return () => {
    text ??= JSON.stringify(app.swagger(), null, 2)
    return text
  }
}

type Parameter = { in: string; required?: boolean; schema?: { default?: unknown } }
type Described = {
  requestBody?: { required?: boolean }
  parameters?: readonly Parameter[]
  [optionalBodyKey]?: boolean
}

/** The plugin says of every body that it is required. */
function markOptionalBody(operation: Described): void {
  if (operation[optionalBodyKey] === true && operation.requestBody !== undefined) {
    operation.requestBody.required = false
  }
  delete operation[optionalBodyKey]
}

/** A schema requires what it has a default for, since it is always there once it was read. Callers may leave it out. */
function markOptionalParameters({ parameters = [] }: Described): void {
  for (const parameter of parameters) {
    if (parameter.in === 'query' && parameter.schema?.default !== undefined) parameter.required = false
  }
}

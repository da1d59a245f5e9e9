import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'

const tags = [
  { name: 'server', description: 'Version, store and limits of this server.' },
  {
    name: 'queues',
    description: 'Create, configure, pause and delete queues; produce items and extend leases.',
  },
  {
    name: 'letters',
    description: 'Dead letters: capture, search, read, redrive and discard. See docs/letters-api.md.',
  },
  { name: 'groups', description: 'Groups of dead letters that have the same cause.' },
  {
    name: 'campaigns',
    description: 'Durable redrives or discards of many letters, each with a frozen set and a report.',
  },
  { name: 'archive', description: 'Letters that retention moved to the archive.' },
  {
    name: 'audit',
    description: 'The audit log: every change by a person, with actor, target, time and reason.',
  },
  { name: 'queue-api', description: 'The Queue API in JSON and protobuf. See docs/queue-api.md.' },
  {
    name: 'dlq',
    description: 'Dead letters in the form of the management API and of the topic API. See docs/dlq-api.md.',
  },
  { name: 'watching', description: 'Health checks and metrics. They need no credential.' },
  { name: 'pages', description: 'Web pages, and this OpenAPI document.' },
]

/** Marks a route whose body may be omitted. The mark is removed before the document is published. */
export const optionalBodyKey = 'x-optional-body'

/** Generates OpenAPI for all routes that are registered after this call. */
export function describeApi(app: FastifyInstance, version: string): void {
  app.register(swagger, {
    transform: ({ schema, url, route }) => ({
      schema: { ...schema, ...route.config?.row?.openapi } as typeof schema,
      url,
    }),
    transformObject: (document) => {
      if (!('openapiObject' in document)) throw new Error('the description is not an OpenAPI document')
      for (const operations of Object.values(document.openapiObject.paths ?? {})) {
        for (const operation of Object.values(operations ?? {})) {
          markOptionalBody(operation as Described)
          markOptionalParameters(operation as Described)
        }
      }
      return document.openapiObject
    },
    // Without a resolver, named schemas would appear as `def-0`.
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

/**
 * Returns the document as JSON text. It is generated once, because it cannot change while the server runs.
 */
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

/** Corrects the plugin, which marks every body as required. */
function markOptionalBody(operation: Described): void {
  if (operation[optionalBodyKey] === true && operation.requestBody !== undefined) {
    operation.requestBody.required = false
  }
  delete operation[optionalBodyKey]
}

/**
 * A parameter with a default is required in the schema, because it always has a value. Callers may omit it.
 */
function markOptionalParameters({ parameters = [] }: Described): void {
  for (const parameter of parameters) {
    if (parameter.in === 'query' && parameter.schema?.default !== undefined) parameter.required = false
  }
}

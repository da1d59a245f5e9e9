/** Creates the OpenAPI 3.1 document from the route table. */
import type { TObject } from 'typebox'
import type { Dialect } from '../answers/dialect.ts'
import type { MediaTypes, Route } from '../route.ts'
import { listAnsweredErrors } from './error-responses.ts'
import { createSchemaWriter, type JsonSchema, type SchemaWriter } from './json-schema.ts'

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
  {
    name: 'webhooks',
    description:
      'Delivery to webhook consumers: state, limits, attempts, secrets. See docs/webhook-delivery.md.',
  },
  {
    name: 'kafka',
    description: 'Kafka clusters, dead-letter topics and consumer groups. See docs/kafka.md.',
  },
  { name: 'internal', description: 'Dead letters of Kafka topics for internal tools. See docs/kafka.md.' },
  { name: 'access', description: 'Signing in and out with a browser. See docs/access.md.' },
  { name: 'queue-api', description: 'The Queue API in JSON and protobuf. See docs/queue-api.md.' },
  {
    name: 'dlq',
    description: 'Dead letters in the form of the management API and of the topic API. See docs/dlq-api.md.',
  },
  { name: 'workers', description: 'Workers, their heartbeats, and problems of workers and lag.' },
  { name: 'alerts', description: 'Alerts, their rules, and the channels that they are sent to.' },
  { name: 'watching', description: 'Health checks and metrics. They need no credential.' },
  { name: 'pages', description: 'Web pages, and this OpenAPI document.' },
  { name: 'test-hooks', description: 'Only with --test-hooks: set the clock and hold queues.' },
]

const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key, or a token of an identity provider. See docs/access.md.',
  },
  apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'An API key.' },
  internalKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Internal-Api-Key',
    description: 'An API key, below /internal/v1 only, from an address in auth.internal_networks.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'redrive_session',
    description:
      'The session of a browser that signed in with POST /api/v1/session. With TLS the cookie is ' +
      '__Host-redrive_session.',
  },
}

/** The credentials that every route accepts. */
const usual = ['bearer', 'apiKey', 'session'] as const

/**
 * `{}`: a server without access control needs no credential, and accepts only requests of its machine. Tokens
 * of webhooks are parameters: they are needed besides the credential, also without access control.
 */
function listSecurity(names: readonly (keyof typeof securitySchemes)[]): readonly object[] {
  return [{}, ...names.map((name) => ({ [name]: [] }))]
}

/** Undefined: the credentials of the document. */
function describeSecurity({ permission, path }: Route): readonly object[] | undefined {
  if (permission === 'public') return [{}]
  return path.startsWith('/internal/v1/') ? listSecurity([...usual, 'internalKey']) : undefined
}

/** Returns the document as JSON text. It is created at the first call, because few servers are asked. */
export function createOpenapiText(routes: readonly Route[], version: string): () => string {
  let text: string | undefined
  return () => {
    text ??= JSON.stringify(createOpenapi(routes, version), null, 2)
    return text
  }
}

export function createOpenapi(routes: readonly Route[], version: string): object {
  const schemas = createSchemaWriter()
  const paths: Record<string, Record<string, object>> = {}
  for (const row of routes) {
    const operations = paths[row.path] ?? {}
    operations[row.method.toLowerCase()] = describeOperation(row, schemas)
    paths[row.path] = operations
  }
  const used = new Set(routes.map((row) => row.tag))
  return {
    openapi: '3.1.0',
    info: {
      title: 'Redrive',
      version,
      description:
        'Keeps every message that a system failed to process, shows why it failed, and brings it back.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The server that sent this document.' }],
    security: listSecurity(usual),
    tags: tags.filter(({ name }) => used.has(name)),
    paths,
    components: { schemas: schemas.listComponents(), securitySchemes },
  }
}

function describeOperation(row: Route, schemas: SchemaWriter): object {
  const { operationId, summary, schema } = row
  const body = describeBody(row, schemas)
  const security = describeSecurity(row)
  return {
    operationId,
    summary: readFirstSentence(summary),
    description: describe(row),
    tags: [row.tag],
    'x-permission': row.permission,
    ...(security !== undefined && { security }),
    parameters: [
      ...describeParameters(schema.params, 'path', schemas),
      ...describeParameters(schema.querystring, 'query', schemas),
      ...describeParameters(row.openapi?.headers, 'header', schemas),
    ],
    ...(body !== undefined && { requestBody: body }),
    responses: { ...describeAnswers(row, schemas), ...describeErrors(row, schemas) },
  }
}

/** A colon ends the summary of a list: `Restores letters: as DEAD if …`. */
function readFirstSentence(text: string): string {
  const [first = text] = text.split(/(?<=\.)\s/)
  return first
}

function describe({ summary, permission, isBodyOptional, answerKind }: Route): string {
  const facts = [
    permission === 'public' ? 'Needs no permission.' : `Needs the permission \`${permission}\`.`,
    ...(isBodyOptional === true ? ['The body may be omitted.'] : []),
    ...(answerKind === undefined ? [] : ['The number of such answers in progress is limited.']),
  ]
  return `${summary}\n\n${facts.join(' ')}`
}

function describeParameters(schema: TObject | undefined, place: string, schemas: SchemaWriter): object[] {
  if (schema === undefined) return []
  const required = new Set(schema.required)
  return Object.entries(schema.properties).map(([name, given]) => {
    const { description, examples, ...written } = schemas.write(given)
    return {
      name,
      in: place,
      // A parameter with a default always has a value in the handler, but callers may omit it.
      required: place === 'path' || (required.has(name) && written.default === undefined),
      ...(description !== undefined && { description }),
      schema: { ...simplifyList(written), ...(examples !== undefined && { examples }) },
    }
  })
}

/** A query repeats a parameter for several values: one value is a list with one entry. */
function simplifyList(schema: JsonSchema): JsonSchema {
  const [single, list] = (schema.oneOf ?? []) as [JsonSchema?, JsonSchema?]
  return list?.type === 'array' && JSON.stringify(list.items) === JSON.stringify(single) ? list : schema
}

function describeBody(row: Route, schemas: SchemaWriter): object | undefined {
  const { schema, openapi, isBodyOptional = false } = row
  if (schema.body === undefined) return undefined
  const name = `${toTypeName(row)}Request`
  const content = openapi?.body ?? {
    description: '',
    content: { 'application/json': { schema: schema.body } },
  }
  const { description, ...written } = describeContent(content, name, schemas)
  return { ...(description !== '' && { description }), required: !isBodyOptional, ...written }
}

function describeAnswers(row: Route, schemas: SchemaWriter): Record<string, object> {
  const answers = Object.entries(row.schema.response).map(([status, given]) => {
    const name = `${toTypeName(row)}Response`
    if ('content' in given) return [status, describeContent(given as MediaTypes, name, schemas)]
    const { description = 'The request succeeded.', type } = given as { description?: string; type?: string }
    if (type === 'null') return [status, { description }]
    const content = { 'application/json': { schema: given } }
    return [status, describeContent({ description, content }, name, schemas)]
  })
  return Object.fromEntries(answers)
}

/** The objects of a body have names, so that generated clients have types with names. */
function describeContent({ description, content }: MediaTypes, name: string, schemas: SchemaWriter) {
  const written = Object.entries(content).map(([type, { schema }]) => {
    const isObject = 'properties' in schema
    return [type, { schema: isObject ? schemas.writeNamed(schema, name) : schemas.write(schema) }]
  })
  return { description, content: Object.fromEntries(written) }
}

function describeErrors(row: Route, schemas: SchemaWriter): Record<string, object> {
  const { dialect } = row
  const schema = schemas.writeNamed(dialect.errorSchema, toErrorName(dialect))
  const byStatus = Map.groupBy(listAnsweredErrors(row), ({ status }) => status)
  const answers = [...byStatus].map(([status, errors]) => {
    const codes = [...new Set(errors.map(({ wireCode }) => wireCode))]
    const hints = errors.map(({ wireCode, hint }) => `- \`${wireCode}\`: ${hint}`)
    return [
      status,
      {
        description: `The request failed with one of these codes:\n\n${[...new Set(hints)].join('\n')}`,
        'x-error-codes': codes,
        content: { [dialect.errorContentType]: { schema } },
      },
    ]
  })
  const declared = new Set(Object.keys(row.schema.response))
  return Object.fromEntries(answers.filter(([status]) => !declared.has(String(status))))
}

/** `listLetters` → `ListLetters` */
function toTypeName({ operationId }: Route): string {
  return operationId.charAt(0).toUpperCase() + operationId.slice(1)
}

/** `dlq-messages` → `DlqMessagesError` */
function toErrorName({ name }: Dialect): string {
  const words = name.split('-').map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  return `${words.join('')}Error`
}

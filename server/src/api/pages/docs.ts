import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Type } from 'typebox'
import { KnownError } from '../../errors.ts'
import { route } from '../http/route.ts'
import { v1 } from '../v1/dialect.ts'
import { docsHeaders } from './page-headers.ts'

/** The files of Swagger UI from its package, so that the page needs no other server. */
export const swaggerUiFolder = join(
  dirname(createRequire(import.meta.url).resolve('@fastify/swagger-ui/package.json')),
  'static',
)

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Redrive API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<script src="/docs/swagger-ui-bundle.js" defer></script>
<script src="/docs/start.js" defer></script>
</head>
<body>
<div id="swagger-ui"><p>The API is described in <a href="/openapi.json">/openapi.json</a>.</p></div>
</body>
</html>
`

// Without `validatorUrl: null` the page would send the document to a server of the Swagger project.
const start = `SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  docExpansion: 'list',
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
})
`

const files: ReadonlySet<string> = new Set(['swagger-ui.css', 'swagger-ui-bundle.js'])

export const docsRoutes = [
  route({
    method: 'GET',
    path: '/docs',
    operationId: 'getDocs',
    permission: 'public',
    summary: 'Returns the API documentation as a page, on which calls can be tried.',
    tag: 'pages',
    dialect: v1,
    schema: {
      response: { 200: { description: 'The page.', content: { 'text/html': { schema: Type.String() } } } },
    },
    handler: (_request, reply) => reply.headers(docsHeaders).type('text/html; charset=utf-8').send(page),
  }),

  route({
    method: 'GET',
    path: '/docs/{file}',
    operationId: 'getDocsFile',
    errors: ['NOT_FOUND'],
    permission: 'public',
    summary: 'Returns a script or style sheet of the documentation page.',
    tag: 'pages',
    dialect: v1,
    schema: {
      params: Type.Object({ file: Type.String({ description: 'Name of the file.' }) }),
      response: {
        200: {
          description: 'The file.',
          content: { 'text/javascript': { schema: Type.String() }, 'text/css': { schema: Type.String() } },
        },
      },
    },
    handler: ({ params: { file } }, reply) => {
      if (file === 'start.js') return reply.type('text/javascript; charset=utf-8').send(start)
      if (!files.has(file)) throw new KnownError('NOT_FOUND', `file ${JSON.stringify(file)} does not exist`)
      return reply.sendFile(file, swaggerUiFolder, { maxAge: '1h', cacheControl: true })
    },
  }),

  route({
    method: 'GET',
    path: '/openapi.json',
    operationId: 'getOpenapi',
    permission: 'public',
    summary: 'Returns this OpenAPI 3.1 document.',
    tag: 'pages',
    dialect: v1,
    schema: {
      response: {
        200: { description: 'The document.', content: { 'application/json': { schema: Type.Any() } } },
      },
    },
    handler: (_request, reply, { openapi }) => reply.type('application/json; charset=utf-8').send(openapi()),
  }),
]

import { access } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { KnownError } from '../../errors.ts'
import { route } from '../http/route.ts'
import { v1 } from '../v1/dialect.ts'
import { pageHeaders } from './page-headers.ts'

/** Created by `npm run build`. The relative path is the same from `src` and from `dist`. */
const publicFolder = fileURLToPath(new URL('../../../public', import.meta.url))

const notBuilt = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Redrive</title>
<h1>Redrive is running</h1>
<p>The dashboard is not built. Run <code>npm run build</code> to build it.</p>
<p><a href="/docs">API documentation</a> · <a href="/health">Health</a> · <a href="/metrics">Metrics</a></p>
</html>
`

const html = { description: 'The page.', content: { 'text/html': { schema: Type.String() } } }

export const dashboardRoutes = [
  route({
    method: 'GET',
    path: '/',
    operationId: 'getDashboard',
    permission: 'public',
    summary: 'Returns the dashboard.',
    tag: 'pages',
    dialect: v1,
    schema: { response: { 200: html } },
    handler: async (_request, reply) => {
      reply.headers(pageHeaders).header('Cache-Control', 'no-cache')
      if (!(await exists(`${publicFolder}/index.html`)))
        return reply.type('text/html; charset=utf-8').send(notBuilt)
      return sendFile(reply, 'index.html')
    },
  }),

  route({
    method: 'GET',
    path: '/assets/{file}',
    operationId: 'getDashboardFile',
    errors: ['NOT_FOUND'],
    permission: 'public',
    summary: 'Returns a script, style sheet or image of the dashboard.',
    tag: 'pages',
    dialect: v1,
    schema: {
      params: Type.Object({ file: Type.String({ description: 'Name of the file.' }) }),
      response: {
        200: {
          description: 'The file.',
          content: {
            'text/javascript': { schema: Type.String() },
            'text/css': { schema: Type.String() },
            'image/svg+xml': { schema: Type.String() },
          },
        },
      },
    },
    // The name of a built file contains a hash of its content, so it can be cached forever.
    handler: ({ params: { file } }, reply) => {
      if (!/^[\w-][\w.-]*$/.test(file))
        throw new KnownError('NOT_FOUND', `file ${JSON.stringify(file)} does not exist`)
      return sendFile(reply, `assets/${file}`, { maxAge: '365d', immutable: true, cacheControl: true })
    },
  }),
]

function sendFile(
  reply: FastifyReply,
  file: string,
  options: object = { cacheControl: false },
): FastifyReply {
  return reply.sendFile(file, publicFolder, options)
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

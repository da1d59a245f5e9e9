/**
 * Requests to paths of the webhook API that no route serves: they are checked for the signature of the
 * gateway before they learn that. Requests that a route serves are checked by `webhookRoute`.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ApiContext } from '../context.ts'
import { createPathNotFound } from '../http/connections/http-server.ts'
import { webhookApi } from './dialect.ts'
import { checkGateway, isExemptFromGateway } from './requests.ts'

type GatewayContext = Pick<ApiContext, 'webhookGateway' | 'clock' | 'limits'>

export function addGatewayHook(app: FastifyInstance, context: GatewayContext): void {
  if (context.webhookGateway === null) return
  app.addHook('onRequest', async (request) => {
    const isServed = !request.is404 && 'row' in request.routeOptions.config
    if (isServed || !webhookApi.ownsPath(readPath(request)) || isExemptFromGateway(request, context)) return
    checkGateway(request, context, await readBody(request, context.limits.bodyBytesMax))
    // The body is read, so the request cannot continue to a handler that waits for it.
    if (request.is404) throw createPathNotFound(request.raw.url)
  })
}

function readPath({ raw }: FastifyRequest): string {
  return (raw.url ?? '').split('?', 1)[0] ?? ''
}

/** Bytes above the limit are left out, so the signature of a larger body is wrong. */
async function readBody({ raw }: FastifyRequest, bytesMax: number): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of raw as AsyncIterable<Buffer>) {
    size += chunk.byteLength
    if (size <= bytesMax) chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { parseTraceparent, type TraceContext } from '../../core/trace/trace-context.ts'

/** For OpenAPI: the headers of calls whose items get the trace of the request. */
export const traceRequestHeaders = {
  traceparent: Type.Optional(
    Type.String({
      description: 'The trace of the caller (W3C Trace Context), for items without one. Ignored if invalid.',
    }),
  ),
  tracestate: Type.Optional(Type.String({ description: 'Belongs to traceparent. Up to 512 characters.' })),
}

/** The span of the client, from its headers. Undefined without a valid `traceparent`. */
export function readTrace({ headers }: Pick<FastifyRequest, 'headers'>): TraceContext | undefined {
  const { traceparent } = headers
  if (typeof traceparent !== 'string') return undefined
  const { tracestate } = headers
  return parseTraceparent(traceparent, typeof tracestate === 'string' ? tracestate : '')
}

/** The option of a call to the engine. */
export function withTrace(request: Pick<FastifyRequest, 'headers'>): { trace?: TraceContext } {
  const trace = readTrace(request)
  return trace === undefined ? none : { trace }
}

const none = {}

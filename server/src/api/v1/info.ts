import { Type } from 'typebox'
import { route } from '../http/route.ts'
import { v1 } from './dialect.ts'

export const Info = Type.Object({
  name: Type.Literal('redrive'),
  version: Type.String(),
  store: Type.Object({ kind: Type.Enum(['sqlite', 'memory', 'postgres']), is_up: Type.Boolean() }),
  started_at: Type.String({ format: 'date-time' }),
  uptime_seconds: Type.Number(),
  limits: Type.Object({
    body_bytes_max: Type.Integer(),
    header_bytes_max: Type.Integer(),
    headers_max: Type.Integer(),
    url_bytes_max: Type.Integer(),
    request_seconds_max: Type.Number(),
    keep_alive_seconds: Type.Number(),
  }),
})

export const infoRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/info',
    permission: 'server.info',
    summary: 'What this server is and what it allows.',
    tag: 'server',
    dialect: v1,
    schema: { response: { 200: Info } },
    handler: (_request, _reply, { version, storeKind, health, startedAt, clock, limits }) => ({
      name: 'redrive' as const,
      version,
      store: { kind: storeKind, is_up: health().status === 'pass' },
      started_at: startedAt.toISOString(),
      uptime_seconds: Math.floor(clock.now() / 1_000_000 - startedAt.getTime() / 1_000),
      limits: {
        body_bytes_max: limits.bodyBytesMax,
        header_bytes_max: limits.headerBytesMax,
        headers_max: limits.headersMax,
        url_bytes_max: limits.urlBytesMax,
        request_seconds_max: limits.requestMsMax / 1_000,
        keep_alive_seconds: limits.keepAliveMs / 1_000,
      },
    }),
  }),
]

import { Type } from 'typebox'
import { formatDuration } from '../../core/time/duration.ts'
import { usPerMs } from '../../core/time/instant.ts'
import { component } from '../http/openapi/annotations.ts'
import { route } from '../http/route.ts'
import { v1 } from './dialect.ts'
import { durationView } from './values/duration.ts'
import { time } from './values/schemas.ts'

export const Info = component(
  'ServerInfo',
  Type.Object({
    name: Type.Literal('redrive'),
    version: Type.String({ description: 'Version of the server.' }),
    store: Type.Object({
      kind: Type.Enum(['sqlite', 'memory', 'postgres'], { description: 'Kind of store.' }),
      is_up: Type.Boolean({ description: 'Whether the store answers.' }),
    }),
    started_at: time('When the server started.'),
    uptime_seconds: Type.Number({ description: 'Seconds since the start.' }),
    limits: Type.Object({
      body_bytes_max: Type.Integer({ description: 'Largest request body.' }),
      header_bytes_max: Type.Integer({ description: 'Largest sum of all headers.' }),
      headers_max: Type.Integer({ description: 'Largest number of headers.' }),
      url_bytes_max: Type.Integer({ description: 'Longest URL.' }),
      request_timeout: durationView('The time limit for a client to send a request.'),
      keep_alive_timeout: durationView('How long an idle connection stays open.'),
    }),
  }),
)

export const infoRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/info',
    operationId: 'getInfo',
    permission: 'system.info',
    summary: 'Returns the version, store, uptime and limits of this server.',
    tag: 'server',
    dialect: v1,
    schema: { response: { 200: Info } },
    handler: (_request, _reply, { version, storeKind, health, startedAt, clock, limits }) => ({
      name: 'redrive' as const,
      version,
      store: { kind: storeKind, is_up: health().status !== 'fail' },
      started_at: startedAt.toISOString(),
      uptime_seconds: Math.floor(clock.now() / 1_000_000 - startedAt.getTime() / 1_000),
      limits: {
        body_bytes_max: limits.bodyBytesMax,
        header_bytes_max: limits.headerBytesMax,
        headers_max: limits.headersMax,
        url_bytes_max: limits.urlBytesMax,
        request_timeout: formatDuration(limits.requestMsMax * usPerMs),
        keep_alive_timeout: formatDuration(limits.keepAliveMs * usPerMs),
      },
    }),
  }),
]

import staticFiles from '@fastify/static'
import type { FastifyInstance } from 'fastify'
import type { Metrics } from '../ops/metrics/metrics.ts'
import { type BodyThread, createBodyThread } from './body-thread/body-thread.ts'
import type { ApiContext } from './context.ts'
import { type DlqLimits, defaultDlqLimits } from './dlq/limits.ts'
import type { Dialect } from './http/answers/dialect.ts'
import type { Certificate } from './http/connections/certificate.ts'
import type { Drain } from './http/connections/drain.ts'
import { createHttpServer } from './http/connections/http-server.ts'
import { createOpenapiText } from './http/openapi/document.ts'
import { type Authorize, allowAll } from './http/permission.ts'
import { registerRoutes } from './http/register-routes.ts'
import type { Route } from './http/route.ts'
import { createLeaseCalls } from './lease-calls.ts'
import { swaggerUiFolder } from './pages/docs.ts'
import { defaultLimits, type QueueApiLimits } from './queue/limits.ts'
import * as table from './routes.ts'
import { addGatewayHook } from './webhook/gateway-hook.ts'
import { defaultWebhookOptions, type WebhookGateway, type WebhookOptions } from './webhook/options.ts'

/** The parts of the context that the caller supplies; `createApi` creates the rest. */
export type ApiParts = Readonly<
  Omit<
    ApiContext,
    | 'openapi'
    | 'stopping'
    | 'metrics'
    | 'queueLimits'
    | 'dlqLimits'
    | 'webhookOptions'
    | 'webhookGateway'
    | 'leaseCalls'
    | 'bodyThread'
    | 'signIn'
  > & {
    bodyThread?: BodyThread
    /** Default: no access control. */
    signIn?: ApiContext['signIn']
    queueLimits?: QueueApiLimits
    dlqLimits?: DlqLimits
    webhookOptions?: WebhookOptions
    webhookGateway?: WebhookGateway | null
    createMetrics: (connections: () => number) => Metrics
    isLocalOnly: boolean
    /** The server then speaks HTTPS. */
    certificate?: Certificate
    authorize?: Authorize
    routes?: readonly Route[]
    dialects?: readonly Dialect[]
  }
>

const withoutSignIn = { isRequired: false, isSecure: () => false }

/** Creates the complete HTTP edge. The caller starts listening. */
export async function createApi(
  parts: ApiParts,
): Promise<Readonly<{ app: FastifyInstance; drain: Drain; metrics: Metrics }>> {
  const { createMetrics, isLocalOnly, certificate, authorize = allowAll, ...rest } = parts
  const { routes = table.routes, dialects = table.dialects, ...others } = rest
  const { queueLimits = defaultLimits, dlqLimits = defaultDlqLimits, ...given } = others
  const { webhookOptions = defaultWebhookOptions, webhookGateway = null, ...context } = given
  const { bodyThread = createBodyThread(), signIn = withoutSignIn } = context
  const metrics: Metrics = createMetrics(() => drain.countConnections())
  const { app, drain } = createHttpServer({
    limits: parts.limits,
    log: parts.log,
    dialects,
    isLocalOnly,
    certificate,
    observe: metrics.observe,
  })
  // Only for `reply.sendFile`: the paths that serve files are rows of the route table.
  app.register(staticFiles, { root: swaggerUiFolder, serve: false })
  app.addHook('onClose', () => bodyThread.close())
  addGatewayHook(app, { webhookGateway, clock: parts.clock, limits: parts.limits })
  registerRoutes(
    app,
    routes,
    {
      ...context,
      queueLimits,
      dlqLimits,
      webhookOptions,
      webhookGateway,
      leaseCalls: createLeaseCalls(),
      bodyThread,
      signIn,
      metrics,
      openapi: createOpenapiText(routes, parts.version),
      stopping: drain.signal,
    },
    authorize,
  )
  await app.ready()
  return { app, drain, metrics }
}

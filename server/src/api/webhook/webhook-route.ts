import { type Method, type Route, type RouteSchema, route, type TypedRoute } from '../http/route.ts'
import { checkGateway } from './requests.ts'

/** A route of the webhook API: its handler runs after the signature of the gateway was checked. */
export function webhookRoute<const S extends RouteSchema, const M extends Method, const P extends string>(
  row: Route<S> & Readonly<{ method: M; path: P }>,
): TypedRoute<M, P, S> {
  const { handler } = row
  return route({
    ...row,
    errors: [...(row.errors ?? []), 'SIGNATURE_MISSING', 'SIGNATURE_REFUSED'],
    handler: (request, reply, context) => {
      checkGateway(request, context)
      return handler(request, reply, context)
    },
  })
}

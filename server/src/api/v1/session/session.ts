import { Type } from 'typebox'
import { KnownError } from '../../../errors.ts'
import type { ApiContext } from '../../context.ts'
import { formatSessionCookie, readSessionToken, refuseCrossSite } from '../../http/access/session-cookie.ts'
import { createAttribution } from '../../http/attribution.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'

const SessionView = Type.Object({
  is_required: Type.Boolean({ description: 'Whether this server requires a credential.' }),
  user: Type.Union([Type.String(), Type.Null()], {
    description: 'The name of the user who signed in; null: nobody.',
  }),
})

/** Sessions of browsers. The routes are public: without a session nobody could sign in. */
export const sessionRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/session',
    operationId: 'getSession',
    permission: 'public',
    summary: 'Returns who has signed in with this browser.',
    tag: 'access',
    dialect: v1,
    schema: { response: { 200: SessionView } },
    handler: async (request, reply, context) => {
      reply.header('Cache-Control', 'no-store')
      const { isRequired, isSecure } = context.signIn
      const token = readSessionToken(request.headers, isSecure(request.raw))
      const user = isRequired && token !== undefined ? await findUser(context, token) : null
      return { is_required: isRequired, user }
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/session',
    operationId: 'createSession',
    permission: 'public',
    errors: ['CREDENTIAL_REFUSED', 'TOO_MANY_FAILED_ATTEMPTS', 'CROSS_SITE_REFUSED'],
    summary: 'Signs a browser in with an API key, and sets the cookie of its session.',
    tag: 'access',
    dialect: v1,
    schema: {
      body: Type.Object({ key: Type.String({ minLength: 1, maxLength: 200, description: 'An API key.' }) }),
      response: { 200: SessionView },
    },
    handler: async (request, reply, context) => {
      refuseCrossSite(request.headers)
      const { isRequired, isSecure } = context.signIn
      if (!isRequired) return { is_required: false, user: null }
      const access = context.access()
      const { caller } = request
      // Counts a wrong key before the session is created.
      await access.identify({ kind: 'bearer', text: request.body.key }, caller.address)
      const { actor: _, ...attribution } = createAttribution(request, 'sign-in')
      const { token, expiresAt, username } = await access.sessions.create(request.body.key, attribution)
      const seconds = Math.max(1, Math.ceil((expiresAt - context.clock.now()) / 1_000_000))
      reply.header('Set-Cookie', formatSessionCookie(token, seconds, isSecure(request.raw)))
      reply.header('Cache-Control', 'no-store')
      return { is_required: true, user: username }
    },
  }),

  route({
    method: 'DELETE',
    path: '/api/v1/session',
    operationId: 'deleteSession',
    permission: 'public',
    errors: ['CROSS_SITE_REFUSED'],
    summary: 'Signs a browser out. Its session is refused on every server when this is answered.',
    tag: 'access',
    dialect: v1,
    schema: { response: { 200: SessionView } },
    handler: async (request, reply, context) => {
      refuseCrossSite(request.headers)
      const { isRequired, isSecure } = context.signIn
      const isOverTls = isSecure(request.raw)
      const token = readSessionToken(request.headers, isOverTls)
      reply.header('Set-Cookie', formatSessionCookie('', 0, isOverTls))
      if (isRequired && token !== undefined) {
        await context
          .access()
          .sessions.end(token, createAttribution(request, 'sign-out'))
          .catch(ignoreRefused)
      }
      return { is_required: isRequired, user: null }
    },
  }),
]

async function findUser(context: ApiContext, token: string): Promise<string | null> {
  const { keyPrefix, name } = await context.access().identify({ kind: 'session', token }, '')
  return keyPrefix === null ? null : name
}

/** The session has ended already. */
function ignoreRefused(error: unknown): void {
  if (!(error instanceof KnownError) || error.code !== 'CREDENTIAL_REFUSED') throw error
}

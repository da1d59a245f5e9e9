import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { Access, Credential } from '../../../access/access.ts'
import { openRequestsMs } from '../../../access/create-access.ts'
import { coversGrants } from '../../../core/access/grants.ts'
import { type Identity, nobody } from '../../../core/access/identity.ts'
import type { Permission } from '../../../core/access/permissions.ts'
import { KnownError } from '../../../errors.ts'
import { type Caller, type CallerWatch, createCaller } from '../caller.ts'
import { type Authorize, requireRead } from '../permission.ts'
import { readClientAddress, type TrustedProxies } from './client-address.ts'
import { limitCredential, readCredential } from './credentials.ts'
import { createOpenRequests } from './open-requests.ts'
import { readSessionToken, refuseCrossSite } from './session-cookie.ts'

export type AuthorizeOptions = Readonly<{
  access: () => Access
  isReadOnly: boolean
  proxies: TrustedProxies
  isSecure(request: IncomingMessage): boolean
  /** Where `X-Internal-Api-Key` is accepted; undefined: nowhere. */
  internal: InternalAccess | undefined
}>

/** `networks`: the addresses that may call `/internal/v1`. */
export type InternalAccess = Readonly<{
  networks: TrustedProxies
  onRefused(reason: 'invalid_key' | 'ip_denied'): void
}>

const internalPrefix = '/internal/v1/'

/** Requires a credential whose user has the permission. Used with `access: keys`. */
export function createAuthorize(options: AuthorizeOptions): Authorize {
  const { access, isReadOnly, proxies } = options
  const watch = createWatch(options)
  return (permission, request) => {
    // Answers without the store: for health checks, and while the store cannot be reached.
    if (permission === 'public') return identifyPublic(request, options)
    const address = readClientAddress(request.raw, proxies)
    const identity = countRefusal(request, options, () =>
      access().identify(findCredential(request, address, options), address),
    )
    const admit = (found: Identity): Caller => {
      const caller = createCaller(found, request, proxies, watch)
      if (!caller.maySomewhere(permission)) throw refuse(permission, caller)
      if (isReadOnly) requireRead(permission, request)
      return caller
    }
    return identity instanceof Promise ? identity.then(admit) : admit(identity)
  }
}

/** A health check is answered soon, even if the store hangs. */
const identifyMsMax = 1_000

function identifyPublic(request: FastifyRequest, options: AuthorizeOptions): Caller | Promise<Caller> {
  const { access, proxies } = options
  const anonymous = createCaller(nobody, request, proxies)
  if (request.route?.isCallerOptional !== true) return anonymous
  const address = readClientAddress(request.raw, proxies)
  const identify = async (): Promise<Caller> => {
    const credential = findCredential(request, address, options)
    if (credential.kind === 'none') return anonymous
    return createCaller(await access().identify(credential, address), request, proxies)
  }
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<Caller>((resolve) => {
    timer = setTimeout(() => resolve(anonymous), identifyMsMax)
  })
  return Promise.race([identify().catch(() => anonymous), timeout]).finally(() => clearTimeout(timer))
}

function createWatch(options: AuthorizeOptions): CallerWatch {
  const { access, proxies } = options
  const requests = createOpenRequests({
    readEpoch: async () => access().readEpoch(),
    intervalMs: openRequestsMs,
  })
  return (request, before, end) =>
    requests.add({
      check: async () => {
        const address = readClientAddress(request.raw, proxies)
        const found = await access().identify(findCredential(request, address, options), address)
        if (coversGrants(found, before)) return
        throw new KnownError('ACCESS_DENIED', `user ${before.name} has lost a permission`)
      },
      end,
    })
}

/** By the route, not by the text of the URL: `/internal/%76%31/dlq` is the same path. */
function isInternal({ route }: FastifyRequest): boolean {
  return route?.path.startsWith(internalPrefix) === true
}

function countRefusal(
  request: FastifyRequest,
  { internal }: AuthorizeOptions,
  identify: () => Identity | Promise<Identity>,
): Identity | Promise<Identity> {
  if (internal === undefined || !isInternal(request)) return identify()
  const count = (error: unknown): never => {
    if (isWrongCredential(error)) internal.onRefused('invalid_key')
    throw error
  }
  try {
    const identity = identify()
    return identity instanceof Promise ? identity.catch(count) : identity
  } catch (error) {
    return count(error)
  }
}

function isWrongCredential(error: unknown): boolean {
  const codes: readonly string[] = ['CREDENTIAL_REFUSED', 'TOO_MANY_FAILED_ATTEMPTS']
  return error instanceof KnownError && codes.includes(error.code)
}

function findCredential(
  request: FastifyRequest,
  address: string,
  { internal, isSecure }: AuthorizeOptions,
): Credential {
  const { headers, raw } = request
  if (isInternal(request) && internal !== undefined) {
    if (!internal.networks.check(address)) {
      internal.onRefused('ip_denied')
      throw new KnownError('ACCESS_DENIED', `address ${address} may not call ${internalPrefix}`)
    }
    const key = headers['x-internal-api-key']
    if (typeof key === 'string') return { kind: 'bearer', text: limitCredential(key.trim()) }
  }
  const credential = readCredential(request)
  if (credential.kind !== 'none' || headers.cookie === undefined) return credential
  const token = readSessionToken(headers, isSecure(raw))
  if (token === undefined) return credential
  if (request.method !== 'GET' && request.method !== 'HEAD') refuseCrossSite(headers)
  return { kind: 'session', token }
}

function refuse(permission: Permission, { name, userId, keyPrefix }: Caller): KnownError {
  if (userId === nobody.userId && keyPrefix === null) {
    return new KnownError(
      'CREDENTIAL_MISSING',
      `this request needs a credential with the permission ${permission}`,
    )
  }
  return new KnownError('ACCESS_DENIED', `user ${name} lacks the permission ${permission}`)
}

/** Access control and TLS of a server, from its settings. */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Access } from './access/access.ts'
import type { IdentityProvider } from './access/tokens.ts'
import type { ApiContext } from './api/context.ts'
import { createAuthorize, type InternalAccess } from './api/http/access/authorize.ts'
import { isSecure, noProxies, parseNetworks, type TrustedProxies } from './api/http/access/client-address.ts'
import {
  type Certificate,
  type CertificateFiles,
  createCertificateWatch,
  readCertificate,
} from './api/http/connections/certificate.ts'
import { type Authorize, allowReads } from './api/http/permission.ts'
import type { Settings } from './config/settings/settings.ts'
import { createLoop, type Loop } from './engine/loop.ts'
import { KnownError } from './errors.ts'
import type { Logger } from './ops/log/log.ts'
import { isLoopback } from './ops/loopback.ts'

/**
 * Without access control, every client that reaches the port has all permissions: allow only this machine.
 */
export function checkHost({ host, access, 'test.hooks': hasTestHooks }: Settings): void {
  if (isLoopback(host)) return
  if (hasTestHooks) {
    throw new KnownError(
      'PROTECTED_MODE',
      `refusing to listen on ${host} with test hooks: every client could set the clock and hold queues`,
    )
  }
  if (access === 'keys') return
  throw new KnownError(
    'PROTECTED_MODE',
    `refusing to listen on ${host}: without access control every machine that reaches it could do anything`,
  )
}

export type ApiAccess = Readonly<{
  isLocalOnly: boolean
  authorize?: Authorize
  signIn: ApiContext['signIn']
}>

/** Throws SETTING_INVALID if a list of networks has another entry. */
export function createApiAccess(
  settings: Settings,
  access: () => Access,
  onInternalRefused: InternalAccess['onRefused'],
): ApiAccess {
  const trusted = settings.trusted_proxy
  const proxies = trusted.length === 0 ? noProxies : readNetworks('trusted_proxy', trusted)
  const networks = readNetworks('auth.internal_networks', settings['auth.internal_networks'])
  const internal = { networks, onRefused: onInternalRefused }
  const isRequired = settings.access === 'keys'
  const isReadOnly = settings.read_only
  const isRequestSecure = (request: IncomingMessage): boolean => isSecure(request, proxies)
  const signIn = { isRequired, isSecure: isRequestSecure }
  if (!isRequired) return { isLocalOnly: true, signIn, ...(isReadOnly && { authorize: allowReads }) }
  const authorize = createAuthorize({ access, isReadOnly, proxies, isSecure: isRequestSecure, internal })
  return { isLocalOnly: false, signIn, authorize }
}

function readNetworks(name: string, entries: readonly string[]): TrustedProxies {
  const networks = parseNetworks(entries)
  if (networks !== undefined) return networks
  throw new KnownError(
    'SETTING_INVALID',
    `${name} is ${entries.join(',')}; it must be addresses or CIDR blocks such as 10.0.0.0/8`,
  )
}

/** Undefined: only API keys are accepted. Throws SETTING_INVALID if the audience is missing. */
export function toIdentityProvider(settings: Settings): IdentityProvider | undefined {
  const issuer = settings['auth.oidc_issuer']
  if (issuer === undefined) return undefined
  const audience = settings['auth.oidc_audience']
  if (audience === undefined) {
    throw new KnownError(
      'SETTING_INVALID',
      'auth.oidc_audience is missing: without it a token for any other program would be accepted',
    )
  }
  return {
    issuer,
    audience,
    jwksUrl: settings['auth.oidc_jwks_url'],
    algorithms: checkAlgorithms(settings['auth.oidc_algorithms']),
    clockToleranceMs: settings['auth.oidc_clock_tolerance'],
    rolesClaim: settings['auth.oidc_roles_claim'],
    nameClaim: settings['auth.oidc_name_claim'],
  }
}

/** With HS256 the public key of the issuer would be the secret of all tokens, and `none` signs nothing. */
function checkAlgorithms(names: readonly string[]): readonly string[] {
  const refusedName = names.find((name) => !/^(?:RS|PS|ES)(?:256|384|512)$|^EdDSA$|^Ed25519$/.test(name))
  if (refusedName === undefined) return names
  throw new KnownError(
    'SETTING_INVALID',
    `auth.oidc_algorithms contains ${refusedName}; only algorithms with a public key are accepted`,
  )
}

export type ServerTls = Readonly<{ files: CertificateFiles; certificate: Certificate }>

/** Undefined: the server speaks HTTP. Rejects with TLS_FILES_INVALID. */
export async function readTls(settings: Settings): Promise<ServerTls | undefined> {
  const [certPath, keyPath] = [settings['tls.cert'], settings['tls.key']]
  if (certPath === undefined && keyPath === undefined) return undefined
  if (certPath === undefined || keyPath === undefined) {
    throw new KnownError('SETTING_INVALID', 'tls.cert and tls.key must be given together')
  }
  const files = { certPath, keyPath }
  return { files, certificate: await readCertificate(files) }
}

/** New connections use files that have changed. While new files are invalid, the old ones stay in use. */
export function createTlsLoop(
  { files, certificate }: ServerTls,
  app: FastifyInstance,
  intervalMs: number,
  log: Logger,
): Loop {
  const server = app.server as { setSecureContext?: (certificate: Certificate) => void }
  const watch = createCertificateWatch(files, certificate, (read) => {
    server.setSecureContext?.(read)
    log.info({ cert: files.certPath }, 'the certificate of the server was replaced')
  })
  return createLoop(intervalMs, watch.pass, (error) =>
    log.error({ err: error }, 'the new certificate of the server cannot be used; the old one stays in use'),
  )
}

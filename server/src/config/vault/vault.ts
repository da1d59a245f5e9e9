/**
 * The parts of HashiCorp Vault that Redrive uses: KV version 2, AppRole and token login, database
 * credentials.
 */
import { KnownError } from '../../errors.ts'
import type { Notify } from '../notify.ts'
import { Secret } from '../secrets/secret.ts'
import type { Timers } from '../secrets/timers.ts'
import {
  createVaultHttp,
  type VaultAnswer,
  type VaultEndpoint,
  VaultError,
  type VaultRequest,
} from './vault-http.ts'
import { createVaultLeaseRenewer, type Grant, type VaultLeaseRenewer } from './vault-lease-renewer.ts'

export type VaultLogin =
  | Readonly<{ kind: 'token'; readToken: () => Promise<Secret> }>
  | Readonly<{ kind: 'approle'; mount: string; roleId: string; readSecretId: () => Promise<Secret> }>

export type VaultOptions = VaultEndpoint &
  Readonly<{ login: VaultLogin; kvMount: string; timers: Timers; notify: Notify }>

export type LeasedCredentials = Readonly<{
  user: string
  password: Secret
  leaseId: string
  /** The token that leased the credentials. When it ends, the credentials end too. */
  token: Secret
}>

export interface Vault {
  /** Returns one value of a KV version 2 secret. The path can be with or without `data/`. */
  readKv(path: string, key: string): Promise<Secret>
  /** Leases new database credentials: `<mount>/creds/<role>`. */
  leaseCredentials(path: string): Promise<Grant<LeasedCredentials>>
  renewCredentials(grant: Grant<LeasedCredentials>): Promise<Grant<LeasedCredentials>>
  /** Ends a lease early. Some policies forbid it; then the lease ends at its deadline. */
  revoke(leaseId: string): Promise<void>
  /** True if the credentials were leased with an earlier token, which ends soon. */
  isFromOldToken(leased: LeasedCredentials): boolean
  onTokenReplaced(listener: () => void): () => void
  /** Revokes the token of an AppRole login, and with it everything that was leased with it. */
  close(): Promise<void>
}

export function createVault(options: VaultOptions): Vault {
  const send = createVaultHttp(options)
  const tokens = createTokenRenewer(options, send)

  const isTokenDead = (token: Secret): Promise<boolean> =>
    send({ method: 'GET', path: 'auth/token/lookup-self', token }).then(
      () => false,
      (error) => error instanceof VaultError && error.httpStatus === 403,
    )

  const call = async (request: VaultRequest): Promise<VaultAnswer & { token: Secret }> => {
    const token = await tokens.current()
    try {
      return { ...(await send({ ...request, token })), token }
    } catch (error) {
      const isForbidden = error instanceof VaultError && error.httpStatus === 403
      // 403 means that a policy forbids the request, or that the token was revoked. A new token helps only in
      // the second case.
      if (!isForbidden || !(await isTokenDead(token))) throw error
      tokens.markRejected((present) => present.reveal() === token.reveal())
      const next = await tokens.current()
      if (next.reveal() === token.reveal()) throw error
      return { ...(await send({ ...request, token: next })), token: next }
    }
  }

  return {
    readKv: async (path, key) => {
      const kvPath = toKvDataPath(path, options.kvMount)
      const answer = await call({ method: 'GET', path: kvPath })
      const values = answer.data?.data
      const value = isRecord(values) ? values[key] : undefined
      if (value === undefined || value === null) {
        throw new VaultError(
          `Vault at ${options.address} has no key ${JSON.stringify(key)} at ${kvPath}`,
          404,
        )
      }
      return new Secret(typeof value === 'string' ? value : JSON.stringify(value))
    },
    leaseCredentials: async (path) => {
      const answer = await call({ method: 'GET', path })
      const { username, password } = answer.data ?? {}
      if (typeof username !== 'string' || typeof password !== 'string') {
        throw new VaultError(`Vault at ${options.address} returned no username and password for ${path}`, 404)
      }
      const value = {
        user: username,
        password: new Secret(password),
        leaseId: answer.lease_id ?? '',
        token: answer.token,
      }
      return toGrant(value, answer.lease_duration, answer.renewable)
    },
    renewCredentials: async ({ value, leaseMs }) => {
      const body = { lease_id: value.leaseId, increment: Math.ceil(leaseMs / 1_000) }
      const answer = await call({ method: 'POST', path: 'sys/leases/renew', body })
      return toRenewedGrant(value, answer.lease_duration, answer.renewable)
    },
    revoke: async (leaseId) => {
      await call({ method: 'POST', path: 'sys/leases/revoke', body: { lease_id: leaseId } })
    },
    isFromOldToken: (leased) => {
      const present = tokens.peek()
      return present !== undefined && present.reveal() !== leased.token.reveal()
    },
    onTokenReplaced: (listener) => tokens.onReplaced(listener),
    close: async () => {
      const token = await tokens.close()
      if (options.login.kind !== 'approle' || token === undefined) return
      await send({ method: 'POST', path: 'auth/token/revoke-self', token }).catch((error) =>
        options.notify(
          'warn',
          `the Vault token was not revoked and ends at its deadline: ${toMessage(error)}`,
        ),
      )
    },
  }
}

function createTokenRenewer(
  options: VaultOptions,
  send: (request: VaultRequest) => Promise<VaultAnswer>,
): VaultLeaseRenewer<Secret> {
  const { login, notify } = options

  const acquire = async (): Promise<Grant<Secret>> => {
    if (login.kind === 'approle') {
      const secretId = await login.readSecretId()
      const path = `auth/${login.mount}/login`
      const body = { role_id: login.roleId, secret_id: secretId.reveal() }
      const auth = requireAuth(await send({ method: 'POST', path, body }), path)
      return toGrant(new Secret(auth.client_token), auth.lease_duration, auth.renewable)
    }
    const token = await login.readToken()
    const { data } = await send({ method: 'GET', path: 'auth/token/lookup-self', token })
    const seconds = typeof data?.ttl === 'number' ? data.ttl : 0
    return toGrant(token, seconds, data?.renewable === true)
  }

  const requireAuth = ({ auth }: VaultAnswer, path: string): NonNullable<VaultAnswer['auth']> => {
    if (auth) return auth
    throw new VaultError(`Vault at ${options.address} returned no token for ${path}`, 404)
  }

  return createVaultLeaseRenewer<Secret>(
    {
      acquire,
      renew: async ({ value }) => {
        const path = 'auth/token/renew-self'
        const auth = requireAuth(await send({ method: 'POST', path, token: value, body: {} }), path)
        return toRenewedGrant(value, auth.lease_duration, auth.renewable)
      },
      isTemporary,
      isSame: (one, other) => one.reveal() === other.reveal(),
      onRenewalRefused: (error) =>
        notify(
          'info',
          `requesting a new Vault token, because the current one is not renewed: ${toMessage(error)}`,
        ),
      onFailure: (error, isUsable) => {
        const consequence = isUsable ? 'the current token stays in use' : 'there is no valid token'
        notify('warn', `Vault issued no new token: ${toMessage(error)}; ${consequence}`)
      },
    },
    options.timers,
  )
}

export function isTemporary(error: unknown): boolean {
  return !(error instanceof VaultError) || error.isTemporary
}

/** `secret/x` and `secret/data/x` are the same secret: people use the first form, policies the second. */
export function toKvDataPath(path: string, kvMount: string): string {
  const mount = path.startsWith(`${kvMount}/`) ? kvMount : (path.split('/', 1)[0] ?? '')
  const rest = path.slice(mount.length + 1)
  if (mount === '' || rest === '') {
    throw new KnownError(
      'SETTING_INVALID',
      `vault:${path} is not a valid reference: use vault:<mount>/<path>#<key>`,
    )
  }
  return rest.startsWith('data/') ? path : `${mount}/data/${rest}`
}

/** Vault uses seconds; 0 means that the lease never ends. */
function toGrant<T>(value: T, seconds: number | undefined, isRenewable: boolean | undefined): Grant<T> {
  const leaseMs = seconds === undefined || seconds <= 0 ? Number.POSITIVE_INFINITY : seconds * 1_000
  return { value, leaseMs, isRenewable: isRenewable === true }
}

/** For a renewed lease, 0 means that no time is left. */
function toRenewedGrant<T>(value: T, seconds = 0, isRenewable = false): Grant<T> {
  return { value, leaseMs: seconds * 1_000, isRenewable }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

export function toMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

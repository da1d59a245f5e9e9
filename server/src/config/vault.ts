/**
 * The part of HashiCorp Vault that Redrive uses: KV version 2, AppRole and token login, and leased
 * database credentials.
 */
import { KnownError } from '../errors.ts'
import { createLeaseKeeper, type Grant, type LeaseKeeper } from './lease-keeper.ts'
import type { Notify } from './notify.ts'
import { Secret } from './secret.ts'
import type { Timers } from './timers.ts'
import {
  createVaultHttp,
  type VaultAnswer,
  type VaultEndpoint,
  VaultError,
  type VaultRequest,
} from './vault-http.ts'

export type VaultLogin =
  | Readonly<{ kind: 'token'; readToken: () => Promise<Secret> }>
  | Readonly<{ kind: 'approle'; mount: string; roleId: string; readSecretId: () => Promise<Secret> }>

export type VaultOptions = VaultEndpoint &
  Readonly<{ login: VaultLogin; kvMount: string; timers: Timers; notify: Notify }>

export type LeasedCredentials = Readonly<{
  user: string
  password: Secret
  leaseId: string
  /** The token that they were leased with. They end with it. */
  token: Secret
}>

export interface Vault {
  /** One value of a KV version 2 secret. The path may be written with or without `data/`. */
  readKv(path: string, key: string): Promise<Secret>
  /** Makes new database credentials: `<mount>/creds/<role>`. */
  leaseCredentials(path: string): Promise<Grant<LeasedCredentials>>
  renewCredentials(grant: Grant<LeasedCredentials>): Promise<Grant<LeasedCredentials>>
  /** Ends a lease before its time. Not every policy allows it: then it ends by itself. */
  revoke(leaseId: string): Promise<void>
  /** Whether credentials were leased with a token that is not ours any more and soon ends. */
  isFromOldToken(leased: LeasedCredentials): boolean
  onTokenReplaced(listener: () => void): () => void
  /** Gives the login token back, if it was ours, and with it all that was leased through it. */
  close(): Promise<void>
}

export function createVault(options: VaultOptions): Vault {
  const send = createVaultHttp(options)
  const tokens = createTokenKeeper(options, send)

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
      // A 403 may mean a policy that says no, or a token revoked before its time. Only the second one is
      // helped by another token.
      if (!isForbidden || !(await isTokenDead(token))) throw error
      tokens.rejected((present) => present.reveal() === token.reveal())
      const next = await tokens.current()
      if (next.reveal() === token.reveal()) throw error
      return { ...(await send({ ...request, token: next })), token: next }
    }
  }

  return {
    readKv: async (path, key) => {
      const kvPath = kvDataPath(path, options.kvMount)
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
        throw new VaultError(`Vault at ${options.address} gives no username and password at ${path}`, 404)
      }
      const value = {
        user: username,
        password: new Secret(password),
        leaseId: answer.lease_id ?? '',
        token: answer.token,
      }
      return grantOf(value, answer.lease_duration, answer.renewable)
    },
    renewCredentials: async ({ value, leaseMs }) => {
      const body = { lease_id: value.leaseId, increment: Math.ceil(leaseMs / 1_000) }
      const answer = await call({ method: 'POST', path: 'sys/leases/renew', body })
      return renewedGrant(value, answer.lease_duration, answer.renewable)
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
        options.notify('warn', `the Vault token was not given back and ends by itself: ${messageOf(error)}`),
      )
    },
  }
}

function createTokenKeeper(
  options: VaultOptions,
  send: (request: VaultRequest) => Promise<VaultAnswer>,
): LeaseKeeper<Secret> {
  const { login, notify } = options

  const acquire = async (): Promise<Grant<Secret>> => {
    if (login.kind === 'approle') {
      const secretId = await login.readSecretId()
      const path = `auth/${login.mount}/login`
      const body = { role_id: login.roleId, secret_id: secretId.reveal() }
      const auth = authOf(await send({ method: 'POST', path, body }), path)
      return grantOf(new Secret(auth.client_token), auth.lease_duration, auth.renewable)
    }
    const token = await login.readToken()
    const { data } = await send({ method: 'GET', path: 'auth/token/lookup-self', token })
    const seconds = typeof data?.ttl === 'number' ? data.ttl : 0
    return grantOf(token, seconds, data?.renewable === true)
  }

  const authOf = ({ auth }: VaultAnswer, path: string): NonNullable<VaultAnswer['auth']> => {
    if (auth) return auth
    throw new VaultError(`Vault at ${options.address} gives no token at ${path}`, 404)
  }

  return createLeaseKeeper<Secret>(
    {
      acquire,
      renew: async ({ value }) => {
        const path = 'auth/token/renew-self'
        const auth = authOf(await send({ method: 'POST', path, token: value, body: {} }), path)
        return renewedGrant(value, auth.lease_duration, auth.renewable)
      },
      isTemporary,
      isSame: (one, other) => one.reveal() === other.reveal(),
      onNotRenewed: (error) =>
        notify(
          'info',
          `a new token for Vault is taken, because the old one is not renewed: ${messageOf(error)}`,
        ),
      onTrouble: (error, isUsable) => {
        const rest = isUsable ? 'the present token is used further' : 'there is no token to use'
        notify('warn', `no new token from Vault: ${messageOf(error)}; ${rest}`)
      },
    },
    options.timers,
  )
}

export function isTemporary(error: unknown): boolean {
  return !(error instanceof VaultError) || error.isTemporary
}

/** `secret/x` and `secret/data/x` are the same secret: people know the first, policies have the second. */
export function kvDataPath(path: string, kvMount: string): string {
  const mount = path.startsWith(`${kvMount}/`) ? kvMount : (path.split('/', 1)[0] ?? '')
  const rest = path.slice(mount.length + 1)
  if (mount === '' || rest === '') {
    throw new KnownError(
      'SETTING_INVALID',
      `vault:${path} names no secret: it must be vault:<mount>/<path>#<key>`,
    )
  }
  return rest.startsWith('data/') ? path : `${mount}/data/${rest}`
}

/** Vault counts in seconds; 0 stands for what never ends. */
function grantOf<T>(value: T, seconds: number | undefined, isRenewable: boolean | undefined): Grant<T> {
  const leaseMs = seconds === undefined || seconds <= 0 ? Number.POSITIVE_INFINITY : seconds * 1_000
  return { value, leaseMs, isRenewable: isRenewable === true }
}

/** Here 0 stands for what has no time left. */
function renewedGrant<T>(value: T, seconds = 0, isRenewable = false): Grant<T> {
  return { value, leaseMs: seconds * 1_000, isRenewable }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

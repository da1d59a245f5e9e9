import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type FakeVault, startFakeVault } from '../../../test/vault/fake-vault.ts'
import { createManualTimers } from '../../../test/vault/manual-timers.ts'
import { KnownError } from '../../errors.ts'
import { Secret } from '../secrets/secret.ts'
import { createVault, toKvDataPath, type Vault, type VaultLogin } from './vault.ts'

const timers = createManualTimers()
let server: FakeVault
let vault: Vault | undefined
const notices: string[] = []

beforeAll(async () => {
  server = await startFakeVault(timers)
  await server.putKv('app/db', { password: 'hush', port: '5432' })
})
afterAll(() => server.stop())
beforeEach(() => {
  server.requests.length = 0
  notices.length = 0
})
afterEach(async () => {
  server.answerAll()
  await vault?.close()
  vault = undefined
})

function open(login: VaultLogin, extra: Partial<{ address: string; namespace: string }> = {}): Vault {
  vault = createVault({
    address: extra.address ?? server.address,
    namespace: extra.namespace,
    requestTimeoutMs: 5_000,
    kvMount: 'secret',
    login,
    timers,
    notify: (_, sentence) => notices.push(sentence),
  })
  return vault
}

function withToken(token: string): VaultLogin {
  return { kind: 'token', readToken: async () => new Secret(token) }
}

async function readErrorMessage(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof KnownError && error.code === 'SECRET_UNAVAILABLE') return error.message
  throw new Error(`not a SECRET_UNAVAILABLE: ${error}`)
}

describe('a KV secret', () => {
  it('a KV secret is found with and without data/ in its path', async () => {
    const opened = open(withToken(server.rootToken))
    expect((await opened.readKv('secret/app/db', 'password')).reveal()).toBe('hush')
    expect((await opened.readKv('secret/data/app/db', 'password')).reveal()).toBe('hush')
  })

  it('the mount of a KV path can have several parts', () => {
    expect(toKvDataPath('team/kv/app/db', 'team/kv')).toBe('team/kv/data/app/db')
    expect(toKvDataPath('team/kv/data/app/db', 'team/kv')).toBe('team/kv/data/app/db')
    expect(toKvDataPath('other/app', 'team/kv')).toBe('other/data/app')
  })

  it('requests carry the configured namespace', async () => {
    await open(withToken(server.rootToken), { namespace: 'team-a' }).readKv('secret/app/db', 'password')
    expect(server.lastHeaders()['x-vault-namespace']).toBe('team-a')
  })

  it('the error for a missing secret has the address and the path', async () => {
    const message = await readErrorMessage(
      open(withToken(server.rootToken)).readKv('secret/nothing', 'password'),
    )
    expect(message).toBe(
      `Vault at ${server.address} rejected secret/data/nothing: the path does not exist (HTTP 404)`,
    )
  })

  it('the error for a missing key names the key', async () => {
    const message = await readErrorMessage(
      open(withToken(server.rootToken)).readKv('secret/app/db', 'pasword'),
    )
    expect(message).toBe(`Vault at ${server.address} has no key "pasword" at secret/data/app/db`)
  })
})

describe('a Vault that fails', () => {
  it('the error for a sealed Vault contains its message', async () => {
    server.answerAll({ status: 503, body: { errors: ['Vault is sealed'] } })
    const message = await readErrorMessage(
      open(withToken(server.rootToken)).readKv('secret/app/db', 'password'),
    )
    expect(message).toContain('Vault is sealed (HTTP 503)')
  })

  it('the error for an unreachable Vault has the address and the path', async () => {
    const login = withToken('x')
    const opened = open(login, { address: 'http://127.0.0.1:1' })
    expect(await readErrorMessage(opened.readKv('secret/app/db', 'password'))).toMatch(
      /^Vault at http:\/\/127\.0\.0\.1:1 cannot be reached for auth\/token\/lookup-self: \w+/,
    )
  })

  it('a response that is not JSON is an error', async () => {
    const opened = open(withToken(server.rootToken))
    await opened.readKv('secret/app/db', 'password')
    server.answerNext('secret/data/app/db', { status: 200, body: '<h1>Welcome</h1>' })
    expect(await readErrorMessage(opened.readKv('secret/app/db', 'password'))).toContain(
      'the response is not JSON',
    )
  })

  it('errors and log messages do not contain the token', async () => {
    const token = 'hvs.very-secret-token'
    const message = await readErrorMessage(open(withToken(token)).readKv('secret/app/db', 'password'))
    expect(message).toContain('permission denied (HTTP 403)')
    expect([message, ...notices].join()).not.toContain(token)
  })

  it('a redirect to the active server is followed', async () => {
    const opened = open(withToken(server.rootToken))
    const location = `${server.address}/v1/secret/data/app/db?from=standby`
    server.answerNext('secret/data/app/db', { status: 307, headers: { Location: location } })
    // The fake does not know this query, so the redirected request fails.
    expect(await readErrorMessage(opened.readKv('secret/app/db', 'password'))).toContain('HTTP 404')
    expect(server.requests.at(-1)).toBe('GET secret/data/app/db?from=standby')
  })
})

describe('a login with a token', () => {
  it('the token is renewed at two thirds of its time', async () => {
    const token = await server.createToken(3_600)
    const opened = open(withToken(token))
    await opened.readKv('secret/app/db', 'password')
    await timers.advance(2 * 3_600_000)
    expect(server.requests.filter((line) => line.includes('renew-self')).length).toBeGreaterThanOrEqual(2)
    expect((await opened.readKv('secret/app/db', 'password')).reveal()).toBe('hush')
  })

  it('the token is read again when Vault rejects the old one', async () => {
    let token = await server.createToken(3_600)
    const opened = open({ kind: 'token', readToken: async () => new Secret(token) })
    await opened.readKv('secret/app/db', 'password')
    await timers.advance(20_000)
    await server.revokeToken(token)
    token = await server.createToken(3_600)
    expect((await opened.readKv('secret/app/db', 'password')).reveal()).toBe('hush')
  })

  it('a request that a policy forbids does not replace the token', async () => {
    const opened = open(withToken(server.rootToken))
    server.answerNext('secret/data/app/db', { status: 403, body: { errors: ['1 error: permission denied'] } })
    expect(await readErrorMessage(opened.readKv('secret/app/db', 'password'))).toContain('permission denied')
    expect(server.requests.filter((line) => line === 'GET secret/data/app/db')).toHaveLength(1)
  })
})

describe('a login with AppRole', () => {
  async function createAppRoleLogin(ttl: number, maxTtl: number): Promise<VaultLogin> {
    const { roleId, secretId } = await server.createAppRole(ttl, maxTtl)
    return { kind: 'approle', mount: 'approle', roleId, readSecretId: async () => new Secret(secretId) }
  }

  it('AppRole logs in once, and the token is renewed', async () => {
    const opened = open(await createAppRoleLogin(1_200, 86_400))
    await opened.readKv('secret/app/db', 'password')
    await timers.advance(3_600_000)
    await opened.readKv('secret/app/db', 'password')
    expect(server.requests.filter((line) => line.endsWith('/login'))).toHaveLength(1)
    expect(server.requests.filter((line) => line.includes('renew-self')).length).toBeGreaterThanOrEqual(3)
  })

  it('AppRole logs in again before the token reaches its maximum', async () => {
    const opened = open(await createAppRoleLogin(1_200, 1_500))
    await opened.readKv('secret/app/db', 'password')
    await timers.advance(1_500_000 - 100_000)
    expect(server.requests.filter((line) => line.endsWith('/login'))).toHaveLength(2)
  })

  it('the error of a rejected login does not contain the secret id', async () => {
    const { roleId } = await server.createAppRole(60, 60)
    const readSecretId = async () => new Secret('wrong-secret-id')
    const opened = open({ kind: 'approle', mount: 'approle', roleId, readSecretId })
    const message = await readErrorMessage(opened.readKv('secret/app/db', 'password'))
    expect(message).toContain('auth/approle/login: invalid role or secret ID (HTTP 400)')
    expect(message).not.toContain('wrong-secret-id')
  })

  it('closing the client revokes the token of an AppRole login', async () => {
    const opened = open(await createAppRoleLogin(1_200, 86_400))
    await opened.readKv('secret/app/db', 'password')
    await opened.close()
    expect(server.requests.at(-1)).toBe('POST auth/token/revoke-self')
  })
})

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { manualTimers } from '../../test/vault/manual-timers.ts'
import { type StandInVault, startStandInVault } from '../../test/vault/stand-in-vault.ts'
import { KnownError } from '../errors.ts'
import { Secret } from './secret.ts'
import { createVault, kvDataPath, type Vault, type VaultLogin } from './vault.ts'

const timers = manualTimers()
let server: StandInVault
let vault: Vault | undefined
const said: string[] = []

beforeAll(async () => {
  server = await startStandInVault(timers)
  await server.putKv('app/db', { password: 'hush', port: '5432' })
})
afterAll(() => server.stop())
beforeEach(() => {
  server.asked.length = 0
  said.length = 0
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
    notify: (_, sentence) => said.push(sentence),
  })
  return vault
}

function withToken(token: string): VaultLogin {
  return { kind: 'token', readToken: async () => new Secret(token) }
}

async function complaint(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof KnownError && error.code === 'SECRET_UNAVAILABLE') return error.message
  throw new Error(`not a SECRET_UNAVAILABLE: ${error}`)
}

describe('a KV secret', () => {
  it('is found by the path people know and by the path policies have', async () => {
    const opened = open(withToken(server.rootToken))
    expect((await opened.readKv('secret/app/db', 'password')).reveal()).toBe('hush')
    expect((await opened.readKv('secret/data/app/db', 'password')).reveal()).toBe('hush')
  })

  it('is found below a mount of several parts', () => {
    expect(kvDataPath('team/kv/app/db', 'team/kv')).toBe('team/kv/data/app/db')
    expect(kvDataPath('team/kv/data/app/db', 'team/kv')).toBe('team/kv/data/app/db')
    expect(kvDataPath('other/app', 'team/kv')).toBe('other/data/app')
  })

  it('is asked for in the namespace that is set', async () => {
    await open(withToken(server.rootToken), { namespace: 'team-a' }).readKv('secret/app/db', 'password')
    expect(server.lastHeaders()['x-vault-namespace']).toBe('team-a')
  })

  it('that is not there is named with address and path', async () => {
    const message = await complaint(open(withToken(server.rootToken)).readKv('secret/nothing', 'password'))
    expect(message).toBe(
      `Vault at ${server.address} does not give secret/data/nothing: nothing is there (HTTP 404)`,
    )
  })

  it('without the key is named with the key', async () => {
    const message = await complaint(open(withToken(server.rootToken)).readKv('secret/app/db', 'pasword'))
    expect(message).toBe(`Vault at ${server.address} has no key "pasword" at secret/data/app/db`)
  })
})

describe('a Vault in trouble', () => {
  it('that is sealed says so', async () => {
    server.answerAll({ status: 503, body: { errors: ['Vault is sealed'] } })
    const message = await complaint(open(withToken(server.rootToken)).readKv('secret/app/db', 'password'))
    expect(message).toContain('Vault is sealed (HTTP 503)')
  })

  it('that cannot be reached is named with address and path', async () => {
    const login = withToken('x')
    const opened = open(login, { address: 'http://127.0.0.1:1' })
    expect(await complaint(opened.readKv('secret/app/db', 'password'))).toMatch(
      /^Vault at http:\/\/127\.0\.0\.1:1 cannot be reached for auth\/token\/lookup-self: \w+/,
    )
  })

  it('that answers with a page instead of JSON is not believed', async () => {
    const opened = open(withToken(server.rootToken))
    await opened.readKv('secret/app/db', 'password')
    server.answerNext('secret/data/app/db', { status: 200, body: '<h1>Welcome</h1>' })
    expect(await complaint(opened.readKv('secret/app/db', 'password'))).toContain('the answer is not JSON')
  })

  it('never has its token or what it gave in a complaint', async () => {
    const token = 'hvs.very-secret-token'
    const message = await complaint(open(withToken(token)).readKv('secret/app/db', 'password'))
    expect(message).toContain('permission denied (HTTP 403)')
    expect([message, ...said].join()).not.toContain(token)
  })

  it('that sends us to its active server is followed', async () => {
    const opened = open(withToken(server.rootToken))
    const location = `${server.address}/v1/secret/data/app/db?from=standby`
    server.answerNext('secret/data/app/db', { status: 307, headers: { Location: location } })
    // The stand-in does not know the query, so the redirected request is the one that fails.
    expect(await complaint(opened.readKv('secret/app/db', 'password'))).toContain('HTTP 404')
    expect(server.asked.at(-1)).toBe('GET secret/data/app/db?from=standby')
  })
})

describe('a login with a token', () => {
  it('renews the token at two thirds of its time', async () => {
    const token = await server.createToken(3_600)
    const opened = open(withToken(token))
    await opened.readKv('secret/app/db', 'password')
    await timers.advance(2 * 3_600_000)
    expect(server.asked.filter((line) => line.includes('renew-self')).length).toBeGreaterThanOrEqual(2)
    expect((await opened.readKv('secret/app/db', 'password')).reveal()).toBe('hush')
  })

  it('reads a token that was replaced in its file when the old one is refused', async () => {
    let token = await server.createToken(3_600)
    const opened = open({ kind: 'token', readToken: async () => new Secret(token) })
    await opened.readKv('secret/app/db', 'password')
    await timers.advance(20_000)
    await server.revokeToken(token)
    token = await server.createToken(3_600)
    expect((await opened.readKv('secret/app/db', 'password')).reveal()).toBe('hush')
  })

  it('does not take a policy that says no for a dead token', async () => {
    const opened = open(withToken(server.rootToken))
    server.answerNext('secret/data/app/db', { status: 403, body: { errors: ['1 error: permission denied'] } })
    expect(await complaint(opened.readKv('secret/app/db', 'password'))).toContain('permission denied')
    expect(server.asked.filter((line) => line === 'GET secret/data/app/db')).toHaveLength(1)
  })
})

describe('a login with AppRole', () => {
  async function appRole(ttl: number, maxTtl: number): Promise<VaultLogin> {
    const { roleId, secretId } = await server.createAppRole(ttl, maxTtl)
    return { kind: 'approle', mount: 'approle', roleId, readSecretId: async () => new Secret(secretId) }
  }

  it('happens once, and its token is renewed', async () => {
    const opened = open(await appRole(1_200, 86_400))
    await opened.readKv('secret/app/db', 'password')
    await timers.advance(3_600_000)
    await opened.readKv('secret/app/db', 'password')
    expect(server.asked.filter((line) => line.endsWith('/login'))).toHaveLength(1)
    expect(server.asked.filter((line) => line.includes('renew-self')).length).toBeGreaterThanOrEqual(3)
  })

  it('happens again before the token comes to its last end', async () => {
    const opened = open(await appRole(1_200, 1_500))
    await opened.readKv('secret/app/db', 'password')
    await timers.advance(1_500_000 - 100_000)
    expect(server.asked.filter((line) => line.endsWith('/login'))).toHaveLength(2)
  })

  it('that is refused says so without the secret id', async () => {
    const { roleId } = await server.createAppRole(60, 60)
    const readSecretId = async () => new Secret('wrong-secret-id')
    const opened = open({ kind: 'approle', mount: 'approle', roleId, readSecretId })
    const message = await complaint(opened.readKv('secret/app/db', 'password'))
    expect(message).toContain('auth/approle/login: invalid role or secret ID (HTTP 400)')
    expect(message).not.toContain('wrong-secret-id')
  })

  it('gives its token back at the end', async () => {
    const opened = open(await appRole(1_200, 86_400))
    await opened.readKv('secret/app/db', 'password')
    await opened.close()
    expect(server.asked.at(-1)).toBe('POST auth/token/revoke-self')
  })
})

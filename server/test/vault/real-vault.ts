import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { findFreePort } from '../../../tools/services/process/free-port.ts'
import type { VaultUnderTest } from './vault-under-test.ts'

const policy = `
path "secret/data/*" { capabilities = ["read"] }
path "database/creds/*" { capabilities = ["read"] }
`

/** Runs the given program of Vault or OpenBao in development mode, which keeps its data in memory. */
export async function startRealVault(program: string, databaseUrl: string): Promise<VaultUnderTest> {
  const port = await findFreePort()
  const address = `http://127.0.0.1:${port}`
  const rootToken = randomUUID()
  const args = ['server', '-dev', `-dev-root-token-id=${rootToken}`, `-dev-listen-address=127.0.0.1:${port}`]
  const child = spawn(program, [...args, '-dev-no-store-token'], { stdio: 'ignore' })
  const call = createCaller(address, rootToken)
  await waitUntilReady(child, address)

  await call('POST', 'sys/policies/acl/redrive', { policy })
  await call('POST', 'sys/auth/approle', { type: 'approle' })
  await call('POST', 'sys/mounts/database', { type: 'database' })
  const { username, password, host, pathname } = new URL(databaseUrl)
  await call('POST', 'database/config/test', {
    plugin_name: 'postgresql-database-plugin',
    connection_url: `postgresql://{{username}}:{{password}}@${host}${pathname}?sslmode=disable`,
    allowed_roles: '*',
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
  })

  return {
    address,
    rootToken,
    putKv: async (path, values) => void (await call('POST', `secret/data/${path}`, { data: values })),
    createToken: async (ttlSeconds) => {
      const { auth } = await call('POST', 'auth/token/create', {
        ttl: `${ttlSeconds}s`,
        policies: ['redrive'],
      })
      return String(auth?.client_token)
    },
    revokeToken: async (token) => void (await call('POST', 'auth/token/revoke', { token })),
    createAppRole: async (ttl, maxTtl) => {
      const path = `auth/approle/role/${randomUUID()}`
      await call('POST', path, {
        token_ttl: `${ttl}s`,
        token_max_ttl: `${maxTtl}s`,
        token_policies: 'redrive',
      })
      const role = await call('GET', `${path}/role-id`)
      const secret = await call('POST', `${path}/secret-id`, {})
      return { roleId: String(role.data?.role_id), secretId: String(secret.data?.secret_id) }
    },
    createDatabaseRole: async (name, ttl, maxTtl, owner) => {
      const login = `create role "{{name}}" login password '{{password}}' valid until '{{expiration}}'`
      const ownerStatements = owner
        ? [`grant "${owner}" to "{{name}}"`, `alter role "{{name}}" set role "${owner}"`]
        : []
      await call('POST', `database/roles/${name}`, {
        db_name: 'test',
        creation_statements: [login, ...ownerStatements],
        default_ttl: `${ttl}s`,
        max_ttl: `${maxTtl}s`,
      })
    },
    stop: async () => {
      await call('POST', 'sys/leases/revoke-prefix/database/creds', { sync: true })
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
    },
  }
}

type Answer = { data?: Record<string, unknown>; auth?: Record<string, unknown> }

function createCaller(address: string, token: string) {
  return async (method: string, path: string, body?: object): Promise<Answer> => {
    const response = await fetch(`${address}/v1/${path}`, {
      method,
      headers: { 'X-Vault-Token': token },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: HTTP ${response.status} ${text}`)
    return text === '' ? {} : (JSON.parse(text) as Answer)
  }
}

async function waitUntilReady(child: ChildProcess, address: string): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    if (child.exitCode !== null) throw new Error(`Vault ended with code ${child.exitCode}`)
    const response = await fetch(`${address}/v1/secret/config`).catch(() => undefined)
    // 403: Vault is up, the KV engine is mounted, and the request needs a token.
    if (response?.status === 403) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('Vault did not start within 10 s')
}

/**
 * A stand-in for HashiCorp Vault on loopback: the paths that Redrive uses, with Vault's own request and
 * answer shapes. Its database role really makes PostgreSQL users and really drops them when their lease, or
 * the token that they were leased with, ends. Time comes from outside.
 *
 * `vault-contract.test.ts` holds it to a real Vault where one can be run.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client } from 'pg'
import type { Timers } from '../../src/config/timers.ts'
import type { VaultUnderTest } from './vault-under-test.ts'

export interface StandInVault extends VaultUnderTest {
  /** What was asked, as `GET secret/data/x`, oldest first. */
  readonly asked: string[]
  /** Answers this to everything, until called without an answer. */
  answerAll(answer?: Answer): void
  /** The next request to a path starting with this one is answered so. */
  answerNext(path: string, answer: Answer): void
  lastHeaders(): IncomingHttpHeaders
  /** Drops the users whose lease has ended by now. */
  endLeases(): Promise<void>
  liveUsers(): readonly string[]
}

export type Answer = Readonly<{ status: number; body?: object | string; headers?: Record<string, string> }>

type Token = { endsAtMs: number; maxEndsAtMs: number; ttlMs: number; isRenewable: boolean }
type Lease = { user: string; token: string; endsAtMs: number; maxEndsAtMs: number; ttlMs: number }
type DatabaseRole = Readonly<{ ttlMs: number; maxTtlMs: number; owner: string | undefined }>

const never = Number.POSITIVE_INFINITY
const forbidden: Answer = { status: 403, body: { errors: ['permission denied'] } }

export async function startStandInVault(timers: Timers, databaseUrl?: string): Promise<StandInVault> {
  const rootToken = `hvs.${randomUUID()}`
  const tokens = new Map<string, Token>([
    [rootToken, { endsAtMs: never, maxEndsAtMs: never, ttlMs: 0, isRenewable: false }],
  ])
  const leases = new Map<string, Lease>()
  const kv = new Map<string, Readonly<Record<string, string>>>()
  const appRoles = new Map<string, Readonly<{ secretId: string; ttlMs: number; maxTtlMs: number }>>()
  const databaseRoles = new Map<string, DatabaseRole>()
  const asked: string[] = []
  let always: Answer | undefined
  let nexts: Readonly<{ path: string; answer: Answer }>[] = []
  let headers: IncomingHttpHeaders = {}

  const newToken = (ttlMs: number, maxTtlMs: number, isRenewable = true): string => {
    const id = `hvs.${randomUUID()}`
    const nowMs = timers.nowMs()
    tokens.set(id, { endsAtMs: nowMs + ttlMs, maxEndsAtMs: nowMs + maxTtlMs, ttlMs, isRenewable })
    return id
  }

  const revokeUser = async (leaseId: string): Promise<void> => {
    const lease = leases.get(leaseId)
    leases.delete(leaseId)
    if (lease === undefined || databaseUrl === undefined) return
    await execute(databaseUrl, `drop owned by "${lease.user}"`, `drop role "${lease.user}"`)
  }

  const endLeases = async (): Promise<void> => {
    const nowMs = timers.nowMs()
    for (const [id, token] of tokens) if (token.endsAtMs <= nowMs) tokens.delete(id)
    for (const [id, lease] of leases) {
      if (lease.endsAtMs <= nowMs || !tokens.has(lease.token)) await revokeUser(id)
    }
  }

  const makeUser = async (role: string, made: DatabaseRole, token: string): Promise<Answer> => {
    const user = `v-token-${role}-${randomUUID().slice(0, 8)}`
    const password = randomUUID()
    if (databaseUrl !== undefined) {
      const until = new Date(Date.now() + made.ttlMs + 60_000).toISOString()
      const login = `create role "${user}" login password '${password}' valid until '${until}'`
      const { owner } = made
      const acting = owner
        ? [`grant "${owner}" to "${user}"`, `alter role "${user}" set role "${owner}"`]
        : []
      await execute(databaseUrl, login, ...acting)
    }
    const nowMs = timers.nowMs()
    const leaseId = `database/creds/${role}/${randomUUID()}`
    const { ttlMs } = made
    leases.set(leaseId, { user, token, endsAtMs: nowMs + ttlMs, maxEndsAtMs: nowMs + made.maxTtlMs, ttlMs })
    return ok({
      lease_id: leaseId,
      lease_duration: ttlMs / 1_000,
      renewable: true,
      data: { username: user, password },
    })
  }

  const renewLease = (body: Body): Answer => {
    const id = String(body.lease_id)
    const lease = leases.get(id)
    if (lease === undefined) return { status: 400, body: { errors: ['lease not found'] } }
    const wantedMs = typeof body.increment === 'number' ? body.increment * 1_000 : lease.ttlMs
    const nowMs = timers.nowMs()
    lease.endsAtMs = Math.min(nowMs + wantedMs, lease.maxEndsAtMs)
    const seconds = Math.round((lease.endsAtMs - nowMs) / 1_000)
    return ok({ lease_id: id, lease_duration: seconds, renewable: true })
  }

  const login = (body: Body): Answer => {
    const role = appRoles.get(String(body.role_id))
    if (role === undefined || role.secretId !== body.secret_id) {
      return { status: 400, body: { errors: ['invalid role or secret ID'] } }
    }
    return ok({ auth: authOf(newToken(role.ttlMs, role.maxTtlMs), role.ttlMs / 1_000) })
  }

  const renewToken = (id: string, token: Token): Answer => {
    if (!token.isRenewable) return { status: 400, body: { errors: ['lease is not renewable'] } }
    token.endsAtMs = Math.min(timers.nowMs() + token.ttlMs, token.maxEndsAtMs)
    return ok({ auth: authOf(id, Math.round((token.endsAtMs - timers.nowMs()) / 1_000)) })
  }

  const readKv = (path: string): Answer => {
    const data = kv.get(path)
    if (data === undefined) return { status: 404, body: { errors: [] } }
    const metadata = { created_time: '2026-01-01T00:00:00Z', deletion_time: '', destroyed: false, version: 1 }
    return ok({ data: { data, metadata } })
  }

  const route = async (method: string, path: string, body: Body, tokenId: string): Promise<Answer> => {
    await endLeases()
    if (path === 'auth/approle/login') return login(body)
    const token = tokens.get(tokenId)
    if (token === undefined) return forbidden
    const write = method === 'POST' || method === 'PUT'
    if (path === 'auth/token/lookup-self') {
      const ttl = token.endsAtMs === never ? 0 : Math.round((token.endsAtMs - timers.nowMs()) / 1_000)
      return ok({ data: { id: tokenId, ttl, renewable: token.isRenewable, type: 'service' } })
    }
    if (path === 'auth/token/renew-self' && write) return renewToken(tokenId, token)
    if (path === 'auth/token/revoke-self' && write) {
      tokens.delete(tokenId)
      await endLeases()
      return { status: 204 }
    }
    if (path === 'sys/leases/renew' && write) return renewLease(body)
    if (path === 'sys/leases/revoke' && write) {
      await revokeUser(String(body.lease_id))
      return { status: 204 }
    }
    if (path.startsWith('secret/data/')) return readKv(path.slice('secret/data/'.length))
    const [, role] = /^database\/creds\/(.+)$/.exec(path) ?? []
    if (role === undefined) return { status: 404, body: { errors: [`no handler for route "${path}"`] } }
    const made = databaseRoles.get(role)
    return made ? makeUser(role, made, tokenId) : { status: 400, body: { errors: [`unknown role: ${role}`] } }
  }

  const server = createServer((request, response) => {
    const respond = async (): Promise<void> => {
      const path = (request.url ?? '').replace(/^\/v1\//, '')
      const body = await readBody(request)
      asked.push(`${request.method} ${path}`)
      headers = request.headers
      const next = nexts.find((entry) => path.startsWith(entry.path))
      nexts = nexts.filter((entry) => entry !== next)
      const token = String(request.headers['x-vault-token'] ?? '')
      const answer = next?.answer ?? always ?? (await route(request.method ?? '', path, body, token))
      response.writeHead(answer.status, { 'Content-Type': 'application/json', ...answer.headers })
      response.end(typeof answer.body === 'object' ? JSON.stringify(answer.body) : answer.body)
    }
    respond().catch((error) => response.writeHead(500).end(JSON.stringify({ errors: [String(error)] })))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  return {
    address: `http://127.0.0.1:${port}`,
    rootToken,
    asked,
    answerAll: (answer) => {
      always = answer
    },
    answerNext: (path, answer) => nexts.push({ path, answer }),
    lastHeaders: () => headers,
    endLeases,
    liveUsers: () => [...leases.values()].map((lease) => lease.user),
    putKv: async (path, values) => void kv.set(path, values),
    createToken: async (ttlSeconds) => newToken(ttlSeconds * 1_000, never),
    revokeToken: async (token) => {
      tokens.delete(token)
      await endLeases()
    },
    createAppRole: async (ttlSeconds, maxTtlSeconds) => {
      const made = { roleId: randomUUID(), secretId: randomUUID() }
      appRoles.set(made.roleId, {
        secretId: made.secretId,
        ttlMs: ttlSeconds * 1_000,
        maxTtlMs: maxTtlSeconds * 1_000,
      })
      return made
    },
    createDatabaseRole: async (name, ttlSeconds, maxTtlSeconds, owner) => {
      databaseRoles.set(name, { ttlMs: ttlSeconds * 1_000, maxTtlMs: maxTtlSeconds * 1_000, owner })
    },
    stop: async () => {
      for (const id of [...leases.keys()]) await revokeUser(id)
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

type Body = Readonly<Record<string, unknown>>

/** The envelope that every answer of Vault has. */
function ok(part: object): Answer {
  const envelope = { request_id: randomUUID(), lease_id: '', renewable: false, lease_duration: 0, data: null }
  return { status: 200, body: { ...envelope, wrap_info: null, warnings: null, auth: null, ...part } }
}

function authOf(token: string, seconds: number): object {
  return {
    client_token: token,
    lease_duration: seconds,
    renewable: true,
    token_type: 'service',
    policies: ['default'],
  }
}

async function readBody(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString()
  return text === '' ? {} : (JSON.parse(text) as Body)
}

async function execute(url: string, ...statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}

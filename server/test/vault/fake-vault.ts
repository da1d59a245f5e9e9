/**
 * A fake of HashiCorp Vault on loopback: the paths that Redrive uses, with Vault's request and response
 * formats. Its database role creates real PostgreSQL users, and drops them when their lease ends, or the
 * token that leased them. The clock is a parameter.
 *
 * `vault-contract.test.ts` runs the same tests against the fake and a real Vault, if there is one.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client } from 'pg'
import type { Timers } from '../../src/config/secrets/timers.ts'
import type { VaultUnderTest } from './vault-under-test.ts'

export interface FakeVault extends VaultUnderTest {
  /** All requests, such as `GET secret/data/x`, oldest first. */
  readonly requests: string[]
  /** Sends this answer to every request, until it is called without an answer. */
  answerAll(answer?: Answer): void
  /** Sends this answer to the next request whose path starts with `path`. */
  answerNext(path: string, answer: Answer): void
  lastHeaders(): IncomingHttpHeaders
  /** Drops the users whose lease has ended. */
  endLeases(): Promise<void>
  liveUsers(): readonly string[]
}

export type Answer = Readonly<{ status: number; body?: object | string; headers?: Record<string, string> }>

type Token = { endsAtMs: number; maxEndsAtMs: number; ttlMs: number; isRenewable: boolean }
type Lease = { user: string; token: string; endsAtMs: number; maxEndsAtMs: number; ttlMs: number }
type AppRoleEntry = Readonly<{ secretId: string; ttlMs: number; maxTtlMs: number }>
type DatabaseRole = Readonly<{ ttlMs: number; maxTtlMs: number; owner: string | undefined }>
type Body = Readonly<Record<string, unknown>>
type Handler = (body: Body, tokenId: string, token: Token) => Answer | Promise<Answer>

const never = Number.POSITIVE_INFINITY
const forbidden: Answer = { status: 403, body: { errors: ['permission denied'] } }

export async function startFakeVault(timers: Timers, databaseUrl?: string): Promise<FakeVault> {
  const state = new VaultState(timers, databaseUrl)
  const requests: string[] = []
  let answerToAll: Answer | undefined
  let nextAnswers: Readonly<{ path: string; answer: Answer }>[] = []
  let headers: IncomingHttpHeaders = {}

  const chooseAnswer = async (request: IncomingMessage): Promise<Answer> => {
    const path = (request.url ?? '').replace(/^\/v1\//, '')
    const body = await readBody(request)
    requests.push(`${request.method} ${path}`)
    headers = request.headers
    const next = nextAnswers.find((entry) => path.startsWith(entry.path))
    nextAnswers = nextAnswers.filter((entry) => entry !== next)
    const token = String(request.headers['x-vault-token'] ?? '')
    return next?.answer ?? answerToAll ?? state.handle(request.method ?? '', path, body, token)
  }
  const server = createServer((request, response) => {
    chooseAnswer(request).then(
      (answer) => {
        response.writeHead(answer.status, { 'Content-Type': 'application/json', ...answer.headers })
        response.end(typeof answer.body === 'object' ? JSON.stringify(answer.body) : answer.body)
      },
      (error) => response.writeHead(500).end(JSON.stringify({ errors: [String(error)] })),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  return {
    address: `http://127.0.0.1:${port}`,
    rootToken: state.rootToken,
    requests,
    answerAll: (answer) => {
      answerToAll = answer
    },
    answerNext: (path, answer) => nextAnswers.push({ path, answer }),
    lastHeaders: () => headers,
    endLeases: () => state.endLeases(),
    liveUsers: () => state.liveUsers(),
    putKv: async (path, values) => state.putKv(path, values),
    createToken: async (ttlSeconds) => state.createToken(ttlSeconds * 1_000, never),
    revokeToken: (token) => state.revokeToken(token),
    createAppRole: async (ttl, maxTtl) => state.createAppRole(ttl * 1_000, maxTtl * 1_000),
    createDatabaseRole: async (name, ttl, maxTtl, owner) =>
      state.createDatabaseRole(name, { ttlMs: ttl * 1_000, maxTtlMs: maxTtl * 1_000, owner }),
    stop: async () => {
      await state.revokeAllLeases()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Tokens, leases, secrets and roles of the fake, and its answers to requests. */
class VaultState {
  readonly rootToken = `hvs.${randomUUID()}`
  readonly #timers: Timers
  readonly #databaseUrl: string | undefined
  readonly #tokens = new Map<string, Token>()
  readonly #leases = new Map<string, Lease>()
  readonly #kv = new Map<string, Readonly<Record<string, string>>>()
  readonly #appRoles = new Map<string, AppRoleEntry>()
  readonly #databaseRoles = new Map<string, DatabaseRole>()
  /** Requests that need a token. GET requests have the method in the key. */
  readonly #handlers: Readonly<Record<string, Handler>> = {
    'GET auth/token/lookup-self': (_body, tokenId, token) => this.#lookUpToken(tokenId, token),
    'auth/token/renew-self': (_body, tokenId, token) => this.#renewToken(tokenId, token),
    'auth/token/revoke-self': async (_body, tokenId) => {
      await this.revokeToken(tokenId)
      return { status: 204 }
    },
    'sys/leases/renew': (body) => this.#renewLease(body),
    'sys/leases/revoke': async (body) => {
      await this.#revokeLease(String(body.lease_id))
      return { status: 204 }
    },
  }

  constructor(timers: Timers, databaseUrl: string | undefined) {
    this.#timers = timers
    this.#databaseUrl = databaseUrl
    const endless = { endsAtMs: never, maxEndsAtMs: never, ttlMs: 0, isRenewable: false }
    this.#tokens.set(this.rootToken, endless)
  }

  putKv(path: string, values: Readonly<Record<string, string>>): void {
    this.#kv.set(path, values)
  }

  createToken(ttlMs: number, maxTtlMs: number): string {
    const id = `hvs.${randomUUID()}`
    const nowMs = this.#timers.nowMs()
    this.#tokens.set(id, { endsAtMs: nowMs + ttlMs, maxEndsAtMs: nowMs + maxTtlMs, ttlMs, isRenewable: true })
    return id
  }

  async revokeToken(id: string): Promise<void> {
    this.#tokens.delete(id)
    await this.endLeases()
  }

  createAppRole(ttlMs: number, maxTtlMs: number): Readonly<{ roleId: string; secretId: string }> {
    const [roleId, secretId] = [randomUUID(), randomUUID()]
    this.#appRoles.set(roleId, { secretId, ttlMs, maxTtlMs })
    return { roleId, secretId }
  }

  createDatabaseRole(name: string, role: DatabaseRole): void {
    this.#databaseRoles.set(name, role)
  }

  liveUsers(): readonly string[] {
    return [...this.#leases.values()].map((lease) => lease.user)
  }

  async endLeases(): Promise<void> {
    const nowMs = this.#timers.nowMs()
    for (const [id, token] of this.#tokens) if (token.endsAtMs <= nowMs) this.#tokens.delete(id)
    for (const [id, lease] of this.#leases) {
      if (lease.endsAtMs <= nowMs || !this.#tokens.has(lease.token)) await this.#revokeLease(id)
    }
  }

  async revokeAllLeases(): Promise<void> {
    for (const id of [...this.#leases.keys()]) await this.#revokeLease(id)
  }

  async handle(method: string, path: string, body: Body, tokenId: string): Promise<Answer> {
    await this.endLeases()
    if (path === 'auth/approle/login') return this.#login(body)
    const token = this.#tokens.get(tokenId)
    if (token === undefined) return forbidden
    const handler = this.#handlers[method === 'GET' ? `GET ${path}` : path]
    if (handler !== undefined) return handler(body, tokenId, token)
    if (path.startsWith('secret/data/')) return this.#readKv(path.slice('secret/data/'.length))
    const [, role] = /^database\/creds\/(.+)$/.exec(path) ?? []
    if (role === undefined) return { status: 404, body: { errors: [`no handler for route "${path}"`] } }
    return this.#leaseUser(role, tokenId)
  }

  #login(body: Body): Answer {
    const role = this.#appRoles.get(String(body.role_id))
    if (role === undefined || role.secretId !== body.secret_id) {
      return { status: 400, body: { errors: ['invalid role or secret ID'] } }
    }
    return succeed({ auth: buildAuth(this.createToken(role.ttlMs, role.maxTtlMs), role.ttlMs / 1_000) })
  }

  #lookUpToken(id: string, token: Token): Answer {
    const ttl = token.endsAtMs === never ? 0 : this.#secondsUntil(token.endsAtMs)
    return succeed({ data: { id, ttl, renewable: token.isRenewable, type: 'service' } })
  }

  #renewToken(id: string, token: Token): Answer {
    if (!token.isRenewable) return { status: 400, body: { errors: ['lease is not renewable'] } }
    token.endsAtMs = Math.min(this.#timers.nowMs() + token.ttlMs, token.maxEndsAtMs)
    return succeed({ auth: buildAuth(id, this.#secondsUntil(token.endsAtMs)) })
  }

  #readKv(path: string): Answer {
    const data = this.#kv.get(path)
    if (data === undefined) return { status: 404, body: { errors: [] } }
    const metadata = { created_time: '2026-01-01T00:00:00Z', deletion_time: '', destroyed: false, version: 1 }
    return succeed({ data: { data, metadata } })
  }

  async #leaseUser(roleName: string, token: string): Promise<Answer> {
    const role = this.#databaseRoles.get(roleName)
    if (role === undefined) return { status: 400, body: { errors: [`unknown role: ${roleName}`] } }
    const { ttlMs, maxTtlMs } = role
    const user = `v-token-${roleName}-${randomUUID().slice(0, 8)}`
    const password = randomUUID()
    if (this.#databaseUrl !== undefined) await createUser(this.#databaseUrl, user, password, role)
    const nowMs = this.#timers.nowMs()
    const leaseId = `database/creds/${roleName}/${randomUUID()}`
    const lease = { user, token, endsAtMs: nowMs + ttlMs, maxEndsAtMs: nowMs + maxTtlMs, ttlMs }
    this.#leases.set(leaseId, lease)
    const data = { username: user, password }
    return succeed({ lease_id: leaseId, lease_duration: ttlMs / 1_000, renewable: true, data })
  }

  #renewLease(body: Body): Answer {
    const id = String(body.lease_id)
    const lease = this.#leases.get(id)
    if (lease === undefined) return { status: 400, body: { errors: ['lease not found'] } }
    const requestedMs = typeof body.increment === 'number' ? body.increment * 1_000 : lease.ttlMs
    lease.endsAtMs = Math.min(this.#timers.nowMs() + requestedMs, lease.maxEndsAtMs)
    const seconds = this.#secondsUntil(lease.endsAtMs)
    return succeed({ lease_id: id, lease_duration: seconds, renewable: true })
  }

  async #revokeLease(id: string): Promise<void> {
    const lease = this.#leases.get(id)
    this.#leases.delete(id)
    if (lease === undefined || this.#databaseUrl === undefined) return
    await execute(this.#databaseUrl, `drop owned by "${lease.user}"`, `drop role "${lease.user}"`)
  }

  #secondsUntil(atMs: number): number {
    return Math.round((atMs - this.#timers.nowMs()) / 1_000)
  }
}

async function createUser(url: string, user: string, password: string, role: DatabaseRole): Promise<void> {
  const validUntil = new Date(Date.now() + role.ttlMs + 60_000).toISOString()
  const { owner } = role
  await execute(
    url,
    `create role "${user}" login password '${password}' valid until '${validUntil}'`,
    ...(owner ? [`grant "${owner}" to "${user}"`, `alter role "${user}" set role "${owner}"`] : []),
  )
}

/** Adds the fields that every response of Vault has. */
function succeed(fields: object): Answer {
  const envelope = { request_id: randomUUID(), lease_id: '', renewable: false, lease_duration: 0, data: null }
  return { status: 200, body: { ...envelope, wrap_info: null, warnings: null, auth: null, ...fields } }
}

function buildAuth(token: string, seconds: number): object {
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

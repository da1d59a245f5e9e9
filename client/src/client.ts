import { RedriveError } from './error.ts'
import type { Health, ServerInfo } from './wire.ts'

export type ClientOptions = Readonly<{
  /** Where the server is, such as `http://127.0.0.1:8080`. In a page of the server itself: leave it out. */
  url?: string
  /** How long an answer may take. Default 30,000. */
  answerMsMax?: number
  fetch?: typeof fetch
}>

export type CallOptions = Readonly<{ signal?: AbortSignal }>

/** Calls a Redrive server. Each call rejects with a RedriveError when the server says no. */
export interface Client {
  info(options?: CallOptions): Promise<ServerInfo>
  /** Resolves with the failing checks, too: a sick server that answers is an answer. */
  health(options?: CallOptions): Promise<Health>
}

export function createClient(options: ClientOptions = {}): Client {
  const { url = '', answerMsMax = 30_000 } = options
  const base = url.replace(/\/+$/, '')
  // Looked up at each call and called as a bare function: browsers refuse any other receiver.
  const send: typeof fetch = (...args) => (options.fetch ?? fetch)(...args)

  const get = async (
    path: string,
    fine: readonly number[],
    { signal }: CallOptions = {},
  ): Promise<unknown> => {
    const timeout = AbortSignal.timeout(answerMsMax)
    const answer = await send(base + path, {
      headers: { Accept: 'application/json, application/health+json' },
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    })
    const body: unknown = await answer.json().catch(() => undefined)
    if (fine.includes(answer.status) && body !== undefined) return body
    throw new RedriveError(answer.status, body, answer.headers.get('x-request-id') ?? '')
  }

  return {
    info: async (call) => (await get('/api/v1/info', [200], call)) as ServerInfo,
    health: async (call) => {
      const body = await get('/health', [200, 503], call)
      if (isHealth(body)) return body
      throw new RedriveError(503, body, '')
    },
  }
}

/** A server that is stopping answers 503 as well, with an error instead. */
function isHealth(body: unknown): body is Health {
  return typeof body === 'object' && body !== null && 'status' in body && 'checks' in body
}

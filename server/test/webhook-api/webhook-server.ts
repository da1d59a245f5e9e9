/** Servers on both stores for tests of the webhook API, and short functions to call it. */
import type { Settings } from '../../src/config/settings/settings.ts'
import { describeServer, type StoreServer } from '../http/store-server.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read the fields that they expect, at any depth
type Body = any
export type WebhookAnswer = Readonly<{ status: number; headers: Headers; text: string; json: Body }>
type Given = Readonly<{
  form?: Record<string, string>
  body?: string | Uint8Array
  headers?: Record<string, string>
}>

export interface WebhookServer {
  readonly server: StoreServer
  send(method: string, path: string, given?: Given): Promise<WebhookAnswer>
  /** Creates a producer `p`, the channel and a consumer; each token is the id with `-token`. */
  setUp(channel: string, consumer?: string, type?: 'push' | 'pull', callbackUrl?: string): Promise<void>
  broadcast(channel: string, headers?: Record<string, string>, body?: string): Promise<WebhookAnswer>
  /** Headers with the tokens of a channel and a consumer. */
  tokens(channel: string, consumer: string): Record<string, string>
  /** Repeats a read until it has the value, for work that follows a request. */
  until<T>(read: () => Promise<T>, isDone: (value: T) => boolean): Promise<T>
}

export function describeWebhookServers(
  subject: string,
  settings: Partial<Settings>,
  body: (api: WebhookServer) => void,
): void {
  for (const store of ['SQLite memory', 'PostgreSQL'] as const) {
    describeServer(`${subject} (${store})`, store, settings, (server) => body(createApi(server)))
  }
}

function createApi(server: StoreServer): WebhookServer {
  const send: WebhookServer['send'] = async (method, path, { form, body, headers } = {}) => {
    const sent = form === undefined ? body : new URLSearchParams(form).toString()
    const type = form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }
    const response = await fetch(server.url + path, {
      method,
      headers: { ...type, ...headers },
      ...(sent !== undefined && { body: sent as string }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: isJson ? JSON.parse(text) : null,
    }
  }
  return {
    server,
    send,
    setUp: async (channel, consumer, type = 'push', callbackUrl = 'http://192.0.2.1/') => {
      const put = async (path: string, form: Record<string, string>): Promise<void> => {
        const { status, text } = await send('PUT', path, { form })
        if (status !== 200 && status !== 400) throw new Error(`PUT ${path}: ${status} ${text}`)
      }
      await put('/producer/p', { token: 'p-token', name: 'The producer' })
      await put(`/channel/${channel}`, { token: `${channel}-token` })
      if (consumer === undefined) return
      const form = { token: `${consumer}-token`, callbackUrl, type }
      await put(`/channel/${channel}/consumer/${consumer}`, form)
    },
    broadcast: (channel, headers = {}, body = '{"a":1}') =>
      send('POST', `/channel/${channel}/broadcast`, {
        body,
        headers: {
          'X-Broker-Channel-Token': `${channel}-token`,
          'X-Broker-Producer-ID': 'p',
          'X-Broker-Producer-Token': 'p-token',
          'Content-Type': 'application/json',
          ...headers,
        },
      }),
    tokens: (channel, consumer) => ({
      'X-Broker-Channel-Token': `${channel}-token`,
      'X-Broker-Consumer-Token': `${consumer}-token`,
    }),
    until: async (read, isDone) => {
      for (let attempt = 0; ; attempt++) {
        const value = await read()
        if (isDone(value)) return value
        if (attempt > 400) throw new Error(`still ${JSON.stringify(value)}`)
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    },
  }
}

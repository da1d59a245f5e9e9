/** The sender: pushes over HTTP/1.1 with keep-alive, or HTTP/2 where the receiver offers it. */
import { isIP } from 'node:net'
import type { Attempt } from '../../../core/webhook/attempt.ts'
import { createAddressChecker, readUrlHost } from './address-rules.ts'
import { createConnector } from './connect.ts'
import { OriginPools } from './origin-pools.ts'
import { describeError } from './push-failure.ts'
import { PushHandler } from './push-handler.ts'
import { createHostResolver } from './resolve-host.ts'
import type { PushRequest, Sender, SenderOptions } from './sender.ts'

const defaults = {
  timeoutMs: 30_000,
  connectTimeoutMs: 10_000,
  bodyTimeoutMs: 5_000,
  connectionsPerOriginMax: 200,
  originsMax: 1_000,
  idleSocketsMax: 500,
  idleTimeoutMs: 4_000,
}

export function createSender(options: SenderOptions): Sender {
  const bounds = { ...defaults, ...options }
  const checker = createAddressChecker(options.addresses)
  const resolve = createHostResolver(options.dns)
  const connectOptions = {
    checker,
    resolve,
    timeoutMs: Math.min(bounds.connectTimeoutMs, bounds.timeoutMs),
    ...(options.tlsCa !== undefined && { tlsCa: options.tlsCa }),
  }
  const pools = new OriginPools(bounds, (onOpen) => createConnector({ ...connectOptions, onOpen }))
  let isClosed = false

  const push = (url: URL, request: PushRequest, signal: AbortSignal | undefined): Promise<Attempt> =>
    new Promise((settle) => {
      const timeoutMs = request.timeoutMs ?? bounds.timeoutMs
      const { bodyTimeoutMs } = bounds
      const timeouts = { timeoutMs, headersTimeoutMs: options.headersTimeoutMs ?? timeoutMs, bodyTimeoutMs }
      const entry = pools.acquire(url.origin)
      const onAbort = (): void => handler.abort(createAbortError())
      const onEnd = (): void => {
        signal?.removeEventListener('abort', onAbort)
        pools.release(entry)
      }
      const handler = new PushHandler(url.host, timeouts, settle, onEnd)
      signal?.addEventListener('abort', onAbort)
      entry.pool.dispatch(
        {
          method: 'POST',
          path: url.pathname + url.search,
          headers: addCredentials(url, request.headers),
          body: request.body,
        },
        handler,
      )
    })

  return {
    send: async (request, signal) => {
      const url = parseUrl(request.url)
      if (typeof url === 'string') return refuse(new Error(url), '', 'ERR_INVALID_URL')
      if (isClosed || signal?.aborted === true) return refuse(createAbortError(), url.host)
      return push(url, request, signal)
    },
    checkUrl: (text) => {
      const url = parseUrl(text)
      if (typeof url === 'string') return url
      const host = readUrlHost(url)
      if (isIP(host) === 0 || checker.isHostAllowed(host)) return undefined
      return checker.findAddressProblem(host)
    },
    counts: () => pools.counts(),
    close: () => {
      isClosed = true
      return pools.close()
    },
  }
}

/** The sentence says what is wrong, without the URL: it may contain a secret. */
function parseUrl(text: string): URL | string {
  const url = URL.parse(text)
  if (url === null) return 'the callback URL is not an absolute URL'
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return `the callback URL has the scheme "${url.protocol.slice(0, -1)}" instead of http or https`
  }
  return url
}

function refuse(error: Error, host: string, code?: string): Attempt {
  const failure = describeError(code === undefined ? error : Object.assign(error, { code }), host)
  return {
    isDelivered: false,
    latencyMs: 0,
    address: null,
    status: null,
    response: null,
    failure: code === undefined ? failure : { ...failure, message: error.message },
  }
}

function createAbortError(): Error {
  return Object.assign(new Error('this server ended the push'), { code: 'ABORT_ERR' })
}

/** `https://user:password@host/` asks for basic authentication, as in other HTTP clients. */
function addCredentials(url: URL, headers: readonly string[]): string[] {
  const all = [...headers]
  if (url.username === '' && url.password === '') return all
  if (headers.some((name, at) => at % 2 === 0 && name.toLowerCase() === 'authorization')) return all
  const user = `${decodeText(url.username)}:${decodeText(url.password)}`
  all.push('Authorization', `Basic ${Buffer.from(user).toString('base64')}`)
  return all
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

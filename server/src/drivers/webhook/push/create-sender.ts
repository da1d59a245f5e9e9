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
  const targets = new Targets()
  const pools = new OriginPools(bounds, (onOpen) => createConnector({ ...connectOptions, onOpen }))
  /** One set for all, because a listener per push on a signal costs more than the rest of the bookkeeping. */
  const inProgress = new Set<PushHandler>()
  let isClosed = false

  const push = ({ url, origin, host, path }: Target, request: PushRequest): Promise<Attempt> =>
    new Promise((settle) => {
      const timeoutMs = request.timeoutMs ?? bounds.timeoutMs
      const { bodyTimeoutMs } = bounds
      const timeouts = { timeoutMs, headersTimeoutMs: options.headersTimeoutMs ?? timeoutMs, bodyTimeoutMs }
      const entry = pools.acquire(origin)
      const onEnd = (): void => {
        inProgress.delete(handler)
        pools.release(entry)
      }
      const handler = new PushHandler(host, timeouts, settle, onEnd)
      inProgress.add(handler)
      entry.pool.dispatch(
        {
          method: 'POST',
          path,
          headers: addCredentials(url, request.headers),
          body: request.body,
        },
        handler,
      )
    })

  return {
    send: async (request) => {
      const target = targets.find(request.url)
      if (typeof target === 'string') return refuse(new Error(target), '', 'ERR_INVALID_URL')
      if (isClosed) return refuse(createAbortError(), target.host)
      return push(target, request)
    },
    abort: () => {
      isClosed = true
      for (const handler of inProgress) handler.abort(createAbortError())
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

/** The parts of a callback URL that a push needs. */
type Target = Readonly<{ url: URL; origin: string; host: string; path: string }>
const targetsMax = 1_000

/** The targets that were used lately: parsing a URL takes as long as starting a push. */
class Targets {
  readonly #byText = new Map<string, Target>()

  /** A text says why there is no target. */
  find(text: string): Target | string {
    const known = this.#byText.get(text)
    if (known !== undefined) return known
    const url = parseUrl(text)
    if (typeof url === 'string') return url
    const target = { url, origin: url.origin, host: url.host, path: url.pathname + url.search }
    if (this.#byText.size >= targetsMax) this.#byText.clear()
    this.#byText.set(text, target)
    return target
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
  if (url.username === '' && url.password === '') return headers as string[]
  const all = [...headers]
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

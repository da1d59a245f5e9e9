import { KnownError } from '../../errors.ts'
import type { Secret } from '../secrets/secret.ts'

/** The fields of Vault's responses that Redrive uses, over all engines. */
export type VaultAnswer = Readonly<{
  lease_id?: string
  lease_duration?: number
  renewable?: boolean
  data?: Readonly<Record<string, unknown>> | null
  auth?: Readonly<{ client_token: string; lease_duration: number; renewable: boolean }> | null
}>

export type VaultRequest = Readonly<{
  method: 'GET' | 'POST'
  /** The path below /v1/. */
  path: string
  body?: Readonly<Record<string, unknown>>
  token?: Secret
}>

export type VaultHttp = (request: VaultRequest) => Promise<VaultAnswer>

export type VaultEndpoint = Readonly<{
  address: string
  namespace: string | undefined
  requestTimeoutMs: number
}>

export class VaultError extends KnownError {
  /** Undefined if Vault did not answer. */
  readonly httpStatus: number | undefined

  constructor(message: string, httpStatus: number | undefined, cause?: unknown) {
    super('SECRET_UNAVAILABLE', message, cause)
    this.httpStatus = httpStatus
  }

  /** Vault is unreachable, sealed, overloaded or still replicating: the same request can succeed later. */
  get isTemporary(): boolean {
    const status = this.httpStatus
    return status === undefined || status >= 500 || [408, 412, 429].includes(status)
  }
}

const redirectsMax = 3

/**
 * Calls Vault's HTTP API. Errors contain the address and the path, but no content of requests or responses.
 */
export function createVaultHttp(endpoint: VaultEndpoint): VaultHttp {
  const base = endpoint.address.replace(/\/+$/, '')

  return async (request) => {
    let url = new URL(`${base}/v1/${request.path}`)
    for (let redirects = 0; redirects <= redirectsMax; redirects++) {
      const response = await send(endpoint, request, url)
      const location = response.headers.get('location')
      // A standby redirects to the active server. Check each redirect: the token must not be sent
      // unencrypted.
      if (response.status !== 307 || location === null) return readAnswer(endpoint, request, response)
      const next = new URL(location, url)
      if (url.protocol === 'https:' && next.protocol !== 'https:') break
      url = next
    }
    throw new VaultError(
      `Vault at ${endpoint.address} redirects ${request.path} to an unencrypted address, or too often`,
      undefined,
    )
  }
}

async function send(endpoint: VaultEndpoint, request: VaultRequest, url: URL): Promise<Response> {
  const headers = new Headers({ 'X-Vault-Request': 'true' })
  if (request.token !== undefined) headers.set('X-Vault-Token', request.token.reveal())
  if (endpoint.namespace !== undefined) headers.set('X-Vault-Namespace', endpoint.namespace)
  if (request.body !== undefined) headers.set('Content-Type', 'application/json')
  try {
    return await fetch(url, {
      method: request.method,
      headers,
      redirect: 'manual',
      signal: AbortSignal.timeout(endpoint.requestTimeoutMs),
      ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
    })
  } catch (error) {
    throw new VaultError(
      `Vault at ${endpoint.address} cannot be reached for ${request.path}: ${describeNetworkError(error, endpoint)}`,
      undefined,
      error,
    )
  }
}

async function readAnswer(
  endpoint: VaultEndpoint,
  request: VaultRequest,
  response: Response,
): Promise<VaultAnswer> {
  const body = await readBody(response)
  if (response.ok && body !== undefined) return body as VaultAnswer
  const errors = body !== undefined && 'errors' in body && Array.isArray(body.errors) ? body.errors : []
  const messages = errors.map((line) => String(line).trim().replaceAll(/\s+/g, ' ')).join('; ')
  const reason = messages || describeStatus(response)
  throw new VaultError(
    `Vault at ${endpoint.address} rejected ${request.path}: ${reason} (HTTP ${response.status})`,
    response.status,
  )
}

/** Returns an empty object for an empty body, and undefined if the body is not a JSON object. */
async function readBody(response: Response): Promise<object | undefined> {
  try {
    const text = await response.text()
    const value: unknown = text === '' ? {} : JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined // A page of a proxy, or a closed connection: the status is sufficient.
  }
}

function describeStatus(response: Response): string {
  if (response.status === 404) return 'the path does not exist'
  return response.ok ? 'the response is not JSON' : 'no reason given'
}

function describeNetworkError(error: unknown, endpoint: VaultEndpoint): string {
  if (!(error instanceof Error)) return 'unknown'
  if (error.name === 'TimeoutError') return `no answer within ${endpoint.requestTimeoutMs} ms`
  const { cause } = error
  if (cause instanceof Error) return ('code' in cause && String(cause.code)) || cause.message
  return error.message
}

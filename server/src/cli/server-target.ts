/** A running server that a command acts on, through `/api/v1`. */
import type { Settings } from '../config/settings/settings.ts'
import { KnownError } from '../errors.ts'
import type { Context } from './context.ts'

export type ServerOptions = Readonly<{ server?: string; key?: string }>

export interface ServerTarget {
  get<T>(path: string): Promise<T>
  post<T>(path: string, body: object): Promise<T>
}

type ErrorBody = Readonly<{ error?: Readonly<{ message?: string; hint?: string }> }>

/** Without `--server` and its variable: the server of these settings on this machine. */
export function withServer(settings: Settings, context: Context, options: ServerOptions): ServerTarget {
  const { environment } = context
  const url = options.server ?? environment.REDRIVE_SERVER ?? `http://127.0.0.1:${settings.port}`
  const key = options.key ?? environment.REDRIVE_KEY ?? ''
  const call = async <T>(path: string, init: RequestInit): Promise<T> => {
    const headers = {
      'Content-Type': 'application/json',
      ...(key !== '' && { Authorization: `Bearer ${key}` }),
    }
    const response = await fetch(toUrl(url, path), { ...init, headers }).catch((error: unknown) => {
      throw new KnownError('BAD_REQUEST', `there is no server at ${url}`, error)
    })
    const answer = (await response.json().catch(() => ({}))) as T & ErrorBody
    if (response.ok) return answer
    const message = answer.error?.message ?? 'no JSON was answered'
    throw new KnownError('BAD_REQUEST', `the server answered ${response.status}: ${message}`)
  }
  return {
    get: (path) => call(path, { method: 'GET' }),
    post: (path, body) => call(path, { method: 'POST', body: JSON.stringify(body) }),
  }
}

function toUrl(server: string, path: string): URL {
  if (!/^https?:\/\//.test(server) || !URL.canParse(server))
    throw new KnownError(
      'SETTING_INVALID',
      `--server is ${server.slice(0, 100)}; it must be a URL with http or https`,
    )
  return new URL(`/api/v1/${path}`, server)
}

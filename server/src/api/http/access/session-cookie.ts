/**
 * The cookie of a browser that signed in. Scripts cannot read it (HttpOnly), and other sites cannot send it
 * (SameSite=Strict). With TLS its name has the prefix `__Host-`: browsers then accept it only from this host
 * over TLS, so that nobody can plant another one.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { KnownError } from '../../../errors.ts'

const plainName = 'redrive_session'
const secureName = `__Host-${plainName}`
const tokenForm = /^[0-9A-Za-z]{43}$/

export function readSessionToken(headers: IncomingHttpHeaders, isSecure: boolean): string | undefined {
  const { cookie } = headers
  if (cookie === undefined) return undefined
  const wanted = `${isSecure ? secureName : plainName}=`
  const found = cookie
    .split(';')
    .map((part) => part.trim())
    .find((part) => part.startsWith(wanted))
  const token = found?.slice(wanted.length)
  return token !== undefined && tokenForm.test(token) ? token : undefined
}

/** `seconds` 0 removes the cookie. */
export function formatSessionCookie(token: string, seconds: number, isSecure: boolean): string {
  const name = isSecure ? secureName : plainName
  const secure = isSecure ? '; Secure' : ''
  return `${name}=${token}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`
}

/**
 * Refuses a request with a session that a page of another site could have sent. Browsers say where a request
 * comes from in `Sec-Fetch-Site`; older ones, and pages without TLS, in `Origin`.
 */
export function refuseCrossSite({ host, origin, 'sec-fetch-site': site }: IncomingHttpHeaders): void {
  if (site === 'same-origin' || site === 'none') return
  if (site === undefined && isSameHost(origin, host)) return
  throw new KnownError('CROSS_SITE_REFUSED', 'the request comes from a page of another site')
}

/** Browsers send `Origin` with each request of a page that could change something. */
function isSameHost(origin: string | undefined, host: string | undefined): boolean {
  if (origin === undefined) return true
  return URL.canParse(origin) && new URL(origin).host === host
}

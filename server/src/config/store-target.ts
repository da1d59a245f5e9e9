import { KnownError } from '../errors.ts'
import { nearest } from '../nearest.ts'
import { didYouMean } from './read-settings.ts'
import { Secret } from './secret.ts'
import { maskStore } from './store-text.ts'

/** A store as the `store` setting names it. The password stands apart, so that the URL can be shown. */
export type NamedStore =
  | Readonly<{ kind: 'sqlite'; path: string }>
  | Readonly<{ kind: 'memory' }>
  | Readonly<{ kind: 'postgres'; url: URL; user: string | undefined; password: Secret | undefined }>

/**
 * Reads the `store` setting: a path, `sqlite:<path>`, `:memory:`, or a `postgres://` URL, whose password
 * may be a reference: `postgres://app:file:/run/secrets/db@host/database`.
 *
 * `shown` is how a complaint names it; a store that came out of a reference is itself a secret.
 */
export function parseStore(text: string, shown = maskStore(text)): NamedStore {
  const refuse = (why: string): KnownError =>
    new KnownError('STORE_URL_INVALID', `the store ${JSON.stringify(shown)} cannot be used: ${why}`)

  if (text === ':memory:' || text === 'sqlite::memory:') return { kind: 'memory' }
  // Two letters at least: C:\data is a path.
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(text)?.[1]?.toLowerCase()
  switch (scheme) {
    case undefined:
      return { kind: 'sqlite', path: checkPath(text, refuse) }
    case 'sqlite':
      return { kind: 'sqlite', path: checkPath(text.replace(/^sqlite:(\/\/)?/i, ''), refuse) }
    case 'postgres':
    case 'postgresql':
      return parsePostgres(text, refuse)
    default: {
      const meant = nearest(scheme, ['sqlite', 'postgres', 'postgresql'])
      throw refuse(
        `${JSON.stringify(`${scheme}:`)} is not a kind of store${didYouMean(meant && `${meant}:`)}`,
      )
    }
  }
}

type Refuse = (why: string) => KnownError

function checkPath(path: string, refuse: Refuse): string {
  // Nobody calls a file so, and whoever means a database would get an empty one, its password in the name.
  if (/^[^\\/]*:[^\\/]*@/.test(path) || /(^|\s)(host|user|password|dbname)\s*=/i.test(path)) {
    throw refuse('it looks like a database; write postgres://user:password@host:5432/database')
  }
  if (path.trim() === '' || path.includes('\0')) throw refuse('it names no file')
  if (/[\\/]$/.test(path) || /^\.{1,2}$/.test(path)) throw refuse('it names a folder, not a file')
  // Nobody means a file with one of these names; whoever does writes ./memory.
  if (path === 'memory') throw refuse('did you mean :memory:?')
  if (['sqlite', 'postgres', 'postgresql'].includes(path)) throw refuse('it says which kind, but not where')
  return path
}

function parsePostgres(text: string, refuse: Refuse): NamedStore {
  // A reference holds slashes and a number sign, which a URL's password cannot: it is taken out first.
  const [, before, reference, after] =
    /^(\w+:\/\/[^:@/?#]*):((?:file|env|vault):.*)@([^@]*)$/is.exec(text) ?? []
  const url = parseUrl(reference === undefined ? text : `${before}@${after}`, refuse)
  if (url.pathname.length <= 1) throw refuse('it names no database, as in postgres://user@host:5432/database')
  if (url.searchParams.has('credentials')) {
    throw refuse('leased credentials are named by the setting store.credentials, not in the URL')
  }
  const user = decode(url.username, refuse) ?? url.searchParams.get('user') ?? undefined
  const password = reference ?? decode(url.password, refuse) ?? url.searchParams.get('password') ?? undefined
  url.password = ''
  url.searchParams.delete('password')
  return { kind: 'postgres', url, user, password: password === undefined ? undefined : new Secret(password) }
}

function parseUrl(text: string, refuse: Refuse): URL {
  const url = URL.parse(text)
  if (url === null || !/^\w+:\/\//.test(text)) {
    throw refuse('it is not a URL such as postgres://user@host:5432/database')
  }
  return url
}

function decode(text: string, refuse: Refuse): string | undefined {
  if (text === '') return undefined
  try {
    return decodeURIComponent(text)
  } catch {
    throw refuse('a % in its user or password is not followed by two hexadecimal digits')
  }
}

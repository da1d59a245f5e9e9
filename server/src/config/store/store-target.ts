import { KnownError } from '../../errors.ts'
import { findNearest } from '../../find-nearest.ts'
import { checkHosts, parseStoreUrl } from '../../storage/contract/hosts.ts'
import { Secret } from '../secrets/secret.ts'
import { formatSuggestion } from '../settings/read-settings.ts'
import { maskStore } from './store-text.ts'

/** The parsed `store` setting. The password is separate, so that the URL can be shown. */
export type NamedStore =
  | Readonly<{ kind: 'sqlite'; path: string }>
  | Readonly<{ kind: 'memory' }>
  | Readonly<{ kind: 'postgres'; url: URL; user: string | undefined; password: Secret | undefined }>

/**
 * Parses the `store` setting: a path, `sqlite:<path>`, `:memory:`, or a `postgres://` URL, whose password may
 * be a reference: `postgres://app:file:/run/secrets/db@host/database`. It can name the hosts of a cluster.
 *
 * Error messages show `shown`. For a store that was read from a reference, this is the reference, because the
 * store itself is a secret.
 */
export function parseStore(text: string, shown = maskStore(text)): NamedStore {
  const refuse = (reason: string): KnownError =>
    new KnownError('STORE_URL_INVALID', `the store ${JSON.stringify(shown)} cannot be used: ${reason}`)

  if (text === ':memory:' || text === 'sqlite::memory:') return { kind: 'memory' }
  // A scheme has at least two letters: C:\data is a path.
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
      const nearest = findNearest(scheme, ['sqlite', 'postgres', 'postgresql'])
      const suggestion = formatSuggestion(nearest && `${nearest}:`)
      throw refuse(`${JSON.stringify(`${scheme}:`)} is not a kind of store${suggestion}`)
    }
  }
}

type Refuse = (reason: string) => KnownError

function checkPath(path: string, refuse: Refuse): string {
  // This is a database connection, not a file name. As a path it would create an empty file with the password
  // in its name.
  if (/^[^\\/]*:[^\\/]*@/.test(path) || /(^|\s)(host|user|password|dbname)\s*=/i.test(path)) {
    throw refuse('it looks like a database; use postgres://user:password@host:5432/database')
  }
  if (path.trim() === '' || path.includes('\0')) throw refuse('it is not a valid file name')
  if (/[\\/]$/.test(path) || /^\.{1,2}$/.test(path)) throw refuse('it is a folder, not a file')
  // Files with these names are unlikely; a user can still write ./memory.
  if (path === 'memory') throw refuse('did you mean :memory:?')
  if (['sqlite', 'postgres', 'postgresql'].includes(path))
    throw refuse('it is a kind of store without an address')
  return path
}

function parsePostgres(text: string, refuse: Refuse): NamedStore {
  // A reference contains slashes and a number sign, which are invalid in the password of a URL: remove it
  // first.
  const [, before, reference, after] =
    /^(\w+:\/\/[^:@/?#]*):((?:file|env|vault):.*)@([^@]*)$/is.exec(text) ?? []
  const url = parseUrl(reference === undefined ? text : `${before}@${after}`, refuse)
  if (url.pathname.length <= 1) throw refuse('it has no database, as in postgres://user@host:5432/database')
  // Without this, the rest of a reference such as vault:secret/db#ca would be ignored.
  if (url.hash !== '') throw refuse('it contains a #, which must be written as %23')
  checkHosts(url)
  if (url.searchParams.has('credentials')) {
    throw refuse('leased credentials belong in the setting store.credentials, not in the URL')
  }
  const user = decode(url.username, refuse) ?? url.searchParams.get('user') ?? undefined
  const password = reference ?? decode(url.password, refuse) ?? url.searchParams.get('password') ?? undefined
  url.password = ''
  url.searchParams.delete('password')
  return { kind: 'postgres', url, user, password: password === undefined ? undefined : new Secret(password) }
}

function parseUrl(text: string, refuse: Refuse): URL {
  const url = parseStoreUrl(text)
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

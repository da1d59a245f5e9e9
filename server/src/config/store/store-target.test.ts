import { describe, expect, it } from 'vitest'
import { KnownError } from '../../errors.ts'
import { type NamedStore, parseStore } from './store-target.ts'

function postgres(text: string): Extract<NamedStore, { kind: 'postgres' }> {
  const store = parseStore(text)
  if (store.kind !== 'postgres') throw new Error(`parsed as ${store.kind}`)
  return store
}

function readErrorMessage(text: string): string {
  try {
    parseStore(text)
  } catch (error) {
    if (error instanceof KnownError && error.code === 'STORE_URL_INVALID') return error.message
    throw error
  }
  throw new Error(`${text} was accepted`)
}

describe('a store on disk or in memory', () => {
  it.each([
    ['data/redrive.db', 'data/redrive.db'],
    ['/var/lib/redrive.db', '/var/lib/redrive.db'],
    ['./a:b.db', './a:b.db'],
    ['C:\\redrive\\store.db', 'C:\\redrive\\store.db'],
    ['sqlite:data/redrive.db', 'data/redrive.db'],
    ['sqlite:/var/redrive.db', '/var/redrive.db'],
    ['sqlite:///var/redrive.db', '/var/redrive.db'],
  ])('the store %s is the SQLite file %s', (text, path) => {
    expect(parseStore(text)).toEqual({ kind: 'sqlite', path })
  })

  it('the store :memory: is a memory store', () => {
    expect(parseStore(':memory:')).toEqual({ kind: 'memory' })
    expect(parseStore('sqlite::memory:')).toEqual({ kind: 'memory' })
  })

  it.each(['', '  ', 'data/', '.', 'sqlite:', 'memory', 'postgres', 'a\0b'])(
    'the store %j is rejected',
    (text) => {
      expect(readErrorMessage(text)).toContain('cannot be used')
    },
  )
})

describe('a PostgreSQL store', () => {
  it('the URL of a PostgreSQL store contains no password', () => {
    const store = postgres('postgres://app:p%40ss@db.example:5433/queues?sslmode=require')
    expect(store.url.href).toBe('postgres://app@db.example:5433/queues?sslmode=require')
    expect(store.user).toBe('app')
    expect(store.password?.reveal()).toBe('p@ss')
  })

  it('the password in the URL can be a reference without escaping', () => {
    const store = postgres('postgresql://app:vault:secret/data/team/db#password@db/queues')
    expect(store.url.href).toBe('postgresql://app@db/queues')
    expect(store.password?.reveal()).toBe('vault:secret/data/team/db#password')
  })

  it('the hosts of a cluster are kept, and the password is not', () => {
    const store = postgres(
      'postgres://app:file:/run/secrets/db@db1:5433,db2/queues?target_session_attrs=primary',
    )
    expect(store.url.href).not.toContain('secrets')
    expect(store.password?.reveal()).toBe('file:/run/secrets/db')
    expect(store.user).toBe('app')
    expect(store.url.searchParams.get('host')).toBe('db1,db2')
    expect(store.url.searchParams.get('port')).toBe('5433,5432')
    expect(readErrorMessage('postgres://db1,db2/q?target_session_attrs=standby')).toContain('omit it')
  })

  it('a password given as a URL parameter is removed from the URL as well', () => {
    const store = postgres('postgres:///queues?host=/run/postgresql&user=app&password=hush')
    expect(store.url.href).toBe('postgres:///queues?host=%2Frun%2Fpostgresql&user=app')
    expect([store.user, store.password?.reveal()]).toEqual(['app', 'hush'])
  })

  it('a PostgreSQL URL without a database is rejected', () => {
    expect(readErrorMessage('postgres://app@db')).toContain('has no database')
  })

  it('the error for leased credentials in the URL names store.credentials', () => {
    expect(readErrorMessage('postgres://db/q?credentials=vault:database/creds/rw')).toContain(
      'store.credentials',
    )
  })
})

describe('an invalid store', () => {
  it('the error for an unknown kind of store suggests the nearest kind', () => {
    expect(readErrorMessage('postgress://db/queues')).toContain('did you mean postgres:?')
    expect(readErrorMessage('mysql://db/queues')).toContain('"mysql:" is not a kind of store')
    expect(readErrorMessage('localhost:5432/queues')).toContain('"localhost:" is not a kind of store')
  })

  it.each([
    'postgress://app:hush@db/queues',
    'postgres://app:hush@db:port/queues',
    'postgres://app:hu%sh-hush@db/queues',
    'postgres://app:hush@db',
    'postgres://app:hu/hush@db',
    'postgres://app:hu@hush@db',
    'postgres:app:hush@db',
    'mysql://db/queues?password=hush',
  ])('the error for %s does not show the password', (text) => {
    expect(readErrorMessage(text)).not.toContain('hush')
  })
})

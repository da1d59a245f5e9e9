import { describe, expect, it } from 'vitest'
import { KnownError } from '../errors.ts'
import { type NamedStore, parseStore } from './store-target.ts'

function postgres(text: string): Extract<NamedStore, { kind: 'postgres' }> {
  const store = parseStore(text)
  if (store.kind !== 'postgres') throw new Error(`parsed as ${store.kind}`)
  return store
}

function complaint(text: string): string {
  try {
    parseStore(text)
  } catch (error) {
    if (error instanceof KnownError && error.code === 'STORE_URL_INVALID') return error.message
    throw error
  }
  throw new Error(`${text} was taken`)
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
  ])('takes %s as the SQLite file %s', (text, path) => {
    expect(parseStore(text)).toEqual({ kind: 'sqlite', path })
  })

  it('keeps nothing for :memory:', () => {
    expect(parseStore(':memory:')).toEqual({ kind: 'memory' })
    expect(parseStore('sqlite::memory:')).toEqual({ kind: 'memory' })
  })

  it.each(['', '  ', 'data/', '.', 'sqlite:', 'memory', 'postgres', 'a\0b'])('refuses %j', (text) => {
    expect(complaint(text)).toContain('cannot be used')
  })
})

describe('a PostgreSQL store', () => {
  it('is a URL with the password taken out of it', () => {
    const store = postgres('postgres://app:p%40ss@db.example:5433/queues?sslmode=require')
    expect(store.url.href).toBe('postgres://app@db.example:5433/queues?sslmode=require')
    expect(store.user).toBe('app')
    expect(store.password?.reveal()).toBe('p@ss')
  })

  it('may have its password as a reference, written as it is', () => {
    const store = postgres('postgresql://app:vault:secret/data/team/db#password@db/queues')
    expect(store.url.href).toBe('postgresql://app@db/queues')
    expect(store.password?.reveal()).toBe('vault:secret/data/team/db#password')
  })

  it('may have its password as a parameter, which is taken out as well', () => {
    const store = postgres('postgres:///queues?host=/run/postgresql&user=app&password=hush')
    expect(store.url.href).toBe('postgres:///queues?host=%2Frun%2Fpostgresql&user=app')
    expect([store.user, store.password?.reveal()]).toEqual(['app', 'hush'])
  })

  it('must name a database', () => {
    expect(complaint('postgres://app@db')).toContain('names no database')
  })

  it('is pointed at store.credentials when the URL tries to name leased credentials', () => {
    expect(complaint('postgres://db/q?credentials=vault:database/creds/rw')).toContain('store.credentials')
  })
})

describe('a store that cannot be understood', () => {
  it('is answered with the nearest kind', () => {
    expect(complaint('postgress://db/queues')).toContain('did you mean postgres:?')
    expect(complaint('mysql://db/queues')).toContain('"mysql:" is not a kind of store')
    expect(complaint('localhost:5432/queues')).toContain('"localhost:" is not a kind of store')
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
  ])('never shows its password: %s', (text) => {
    expect(complaint(text)).not.toContain('hush')
  })
})

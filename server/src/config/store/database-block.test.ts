import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { formatHost, readHosts } from '../../storage/contract/hosts.ts'
import { type LoadedSettings, loadSettings, type SettingsSources } from '../settings/load-settings.ts'
import { describeOrigin } from '../settings/origin.ts'
import { parseStore } from './store-target.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-database-block-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const serviceFile = `app:
  name: "dlq-manager"
  version: "1.0.0"
  tier: "system"
  environment: "dev"

database:
  host: "postgres.k1s0-system.svc.cluster.local"
  port: 5432
  name: "dlq_db"
  user: "app"
  password: ""
  ssl_mode: "disable"
  max_open_conns: 10
  max_idle_conns: 3
  conn_max_lifetime: "5m"
`

function load(yaml: string, sources: Partial<SettingsSources> = {}): LoadedSettings {
  writeFileSync(join(folder, 'redrive.yaml'), yaml)
  return loadSettings({ flags: {}, environment: {}, folder, ...sources })
}

it('the config.yaml of an existing service names the store and its connections', () => {
  const { settings, origins } = load(serviceFile)
  expect(settings.store).toBe(
    'postgres://app@postgres.k1s0-system.svc.cluster.local:5432/dlq_db?sslmode=disable',
  )
  expect(describeOrigin(origins.store)).toBe('redrive.yaml line 8')
  expect(settings['store.password']).toBeUndefined()
  expect(settings['postgres.connections_max']).toBe(10)
  expect(settings['database.max_idle_conns']).toBe(3)
  expect(settings['database.conn_max_lifetime']).toBe(300_000)
})

it('the password of the block is the password of the store, and never part of its URL', () => {
  const { settings } = load(serviceFile.replace('password: ""', 'password: "s3cret/@"'))
  expect(settings['store.password']?.reveal()).toBe('s3cret/@')
  expect(settings.store).not.toContain('s3cret')
})

it('unusual names in the block become a valid URL', () => {
  const { settings } = load('database: { host: "::1", name: "a/b c", user: "x@y" }')
  expect(settings.store).toBe('postgres://x%40y@[::1]:5432/a%2Fb%20c')
})

it('several hosts in the block are the hosts of one cluster, with the same port', () => {
  const { settings } = load('database: { host: "db1,fd00::2", port: 5433, name: dlq, user: app }')
  const store = parseStore(settings.store)
  if (store.kind !== 'postgres') throw new Error(`parsed as ${store.kind}`)
  expect(readHosts(store.url).map(formatHost)).toEqual(['db1:5433', '[fd00::2]:5433'])
  expect([store.user, store.url.pathname]).toEqual(['app', '/dlq'])
  expect(() => load('database: { host: "db1,,db2", name: dlq }')).toThrow('which is not a host')
})

it('a store from a source with precedence replaces the block', () => {
  const flags = { store: 'other.db', 'postgres.connections_max': '7' }
  const { settings } = load(serviceFile, { flags })
  expect([settings.store, settings['postgres.connections_max']]).toEqual(['other.db', 7])
  const { settings: fromBlock } = load('store: other.db', {
    environment: { REDRIVE_DATABASE_HOST: 'db', REDRIVE_DATABASE_NAME: 'dlq' },
  })
  expect(fromBlock.store).toBe('postgres://db:5432/dlq')
})

it.each([
  [
    'store: other.db\n',
    'database.host (from redrive.yaml line 9) and store (from redrive.yaml line 1) are both set',
  ],
  ['store.password: x\n', 'database.password and store.password are both set'],
  [
    'postgres.connections_max: 5\n',
    'database.max_open_conns (from redrive.yaml line 15) and postgres.connections_max',
  ],
])('settings of one file that contradict the block are refused: %s', (line, message) => {
  const yaml = line + serviceFile.replace('password: ""', 'password: hush')
  expect(() => load(yaml)).toThrow(message)
})

it.each([
  ['database: { name: x }', 'database.name is set, but database.host is not'],
  ['database: { host: db }', 'database.host is set, but database.name is not'],
  ['database: { host: "a b", name: x }', 'database.host is "a b", which is not a host'],
  ['database: { host: "db/x", name: x }', 'database.host is "db/x", which is not a host'],
  ['database: { host: db, name: x, ssl_mode: sometimes }', 'but must be disable, allow, prefer'],
  ['database: { host: db, name: x, hots: y }', 'did you mean database.host?'],
])('an incomplete or invalid block is refused: %s', (yaml, message) => {
  expect(() => load(yaml)).toThrow(message)
})

import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../../tools/services/require-service.ts'
import { createAuthority } from '../../../../test/certificates.ts'
import { createSecrets } from '../../../config/secrets/secrets.ts'
import { loadSettings } from '../../../config/settings/load-settings.ts'
import type { SettingName } from '../../../config/settings/settings.ts'
import { openStoreTarget } from '../../../config/store/open-store-target.ts'
import { KnownError } from '../../../errors.ts'
import { Connections } from './connections.ts'
import { toKnownError } from './errors.ts'
import { createPgClient } from './tls-connection.ts'

type Flags = Partial<Record<SettingName, string>>

const authority = createAuthority('The authority')
const otherAuthority = createAuthority('Another authority')
const serverCertificate = authority.issue({ name: 'the database', hosts: ['localhost', 'db.example'] })
const dayMs = 24 * 60 * 60 * 1_000

/** tls_only may log in with TLS only, certified only with a client certificate of its name. */
const loginRules = `
hostssl   all certified all cert
hostssl   all tls_only  all trust
hostnossl all tls_only  all reject
host      all all       all trust
`
const server = await requireService('privatePostgres', {
  settings: {
    ssl: 'on',
    ssl_cert_file: 'server.crt',
    ssl_key_file: 'server.key',
    ssl_ca_file: 'root.crt',
  },
  files: {
    'server.crt': serverCertificate.certificate,
    'server.key': serverCertificate.key,
    'root.crt': authority.certificate,
    'pg_hba.conf': loginRules,
  },
})
const serverWithoutTls = await requireService('privatePostgres')

const folder = mkdtempSync(join(tmpdir(), 'redrive-tls-'))
const opened: Connections[] = []
const warnings: string[] = []
let environment: Record<string, string> = {}

function writePem(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

function buildUrl(host: string, user: string, search = ''): string {
  const url = new URL(server.url)
  url.hostname = host
  if (user !== 'redrive') {
    url.username = user
    url.password = ''
  }
  url.search = search
  return url.href
}

/** Opens connections as `redrive serve` does. */
async function open(flags: Flags): Promise<Connections> {
  const { settings } = loadSettings({ flags, environment: {}, folder })
  const notify = (_level: string, sentence: string) => void warnings.push(sentence)
  const secrets = createSecrets({ settings, environment, folder, notify })
  const target = await openStoreTarget(settings, secrets, notify)
  if (target.kind !== 'postgres') throw new Error(target.kind)
  const connections = new Connections({
    url: target.url,
    credentials: target.credentials,
    tls: target.tls,
    poolMax: 4,
    connectTimeoutMs: settings['postgres.connect_timeout'],
  })
  opened.push(connections)
  return connections
}

async function isEncrypted(connections: Connections): Promise<unknown> {
  const [row] = await connections.read({
    name: 'is-encrypted',
    text: 'select ssl from pg_stat_ssl where pid = pg_backend_pid()',
  })
  return row?.ssl
}

/** The error as the log shows it, with the address of the server shortened. */
async function readError(flags: Flags): Promise<string> {
  try {
    const connections = await open(flags)
    await isEncrypted(connections).catch((error: unknown) => {
      throw toKnownError(error, connections.address)
    })
  } catch (error) {
    if (!(error instanceof KnownError)) throw error
    expect(error.publicMessage).not.toContain('localhost')
    return `${error.code}: ${error.message.replaceAll(/:\d+\/(postgres|queues)/g, '')}`
  }
  throw new Error('the connection was opened')
}

const local = (search = '', user = 'redrive') => buildUrl('localhost', user, search)
const root = writePem('root.crt', authority.certificate)
const otherRoot = writePem('other.crt', otherAuthority.certificate)

beforeAll(async () => {
  if (server.missing === undefined) await execute('create role tls_only login; create role certified login')
})

afterEach(async () => {
  await Promise.all(opened.splice(0).map((connections) => connections.close()))
  warnings.length = 0
  environment = {}
})

afterAll(async () => {
  for (const each of [server, serverWithoutTls]) if (each.missing === undefined) await each.end()
  rmSync(folder, { recursive: true })
})

async function execute(...statements: readonly string[]): Promise<void> {
  const client = createPgClient(buildUrl('127.0.0.1', 'redrive', 'sslmode=disable'))
  await client.connect()
  for (const statement of statements) await client.query(statement)
  await client.end()
}

describe('sslmode against a server with TLS', needs(server, serverWithoutTls), () => {
  it.each([
    ['disable', false],
    ['allow', true],
    ['prefer', true],
    ['require', true],
    ['verify-ca', true],
    ['verify-full', true],
  ])('sslmode %s connects with TLS: %s', async (mode, expected) => {
    const verifies = mode.startsWith('verify')
    const search = `sslmode=${mode}${verifies ? `&sslrootcert=${encodeURIComponent(root)}` : ''}`
    expect(await isEncrypted(await open({ store: local(search) }))).toBe(expected)
    const flags: Flags = {
      store: local(),
      'store.sslmode': mode,
      ...(verifies && { 'store.sslrootcert': root }),
    }
    expect(await isEncrypted(await open(flags))).toBe(expected)
  })

  it('without sslmode, a connection uses TLS if the server offers it', async () => {
    expect(await isEncrypted(await open({ store: local() }))).toBe(true)
    expect(await isEncrypted(await open({ store: serverWithoutTls.url }))).toBe(false)
  })

  it('only verify-full compares the name of the server with its certificate', async () => {
    const byAddress = (mode: string) => ({
      store: buildUrl('127.0.0.1', 'redrive', `sslmode=${mode}&sslrootcert=${root}`),
    })
    expect(await isEncrypted(await open(byAddress('verify-ca')))).toBe(true)
    expect(await isEncrypted(await open(byAddress('require')))).toBe(true)
    expect(await readError(byAddress('verify-full'))).toBe(
      'STORE_TLS_FAILED: the certificate of PostgreSQL at 127.0.0.1 is for localhost, db.example, but sslmode verify-full expects 127.0.0.1: use a host name of the certificate in the store URL, or install a certificate for 127.0.0.1 on the database server',
    )
  })

  it.each(['require', 'verify-ca', 'verify-full'])(
    'sslmode %s with a root certificate refuses a server of another authority',
    async (mode) => {
      expect(await readError({ store: local(`sslmode=${mode}&sslrootcert=${otherRoot}`) })).toBe(
        `STORE_TLS_FAILED: the certificate of PostgreSQL at localhost (subject "the database", issuer "The authority") is not signed by an authority of sslrootcert in the store URL (${otherRoot}), which sslmode ${mode} expects (SELF_SIGNED_CERT_IN_CHAIN): set sslrootcert to the certificate of the authority that signed it`,
      )
    },
  )

  it('sslrootcert=system accepts only the authorities that the operating system trusts', async () => {
    expect(await readError({ store: local('sslrootcert=system') })).toContain(
      'is not signed by an authority of the operating system, which sslmode verify-full expects',
    )
  })

  it('sslmode require without a root certificate, and prefer, accept a server of any authority', async () => {
    expect(await isEncrypted(await open({ store: local('sslmode=require') }))).toBe(true)
    expect(await isEncrypted(await open({ store: local(`sslmode=prefer&sslrootcert=${otherRoot}`) }))).toBe(
      true,
    )
  })

  it('a login that needs TLS is refused without it, and the message names sslmode', async () => {
    const error = await readError({ store: local('sslmode=disable', 'tls_only') })
    expect(error).toMatch(
      /^STORE_TLS_FAILED: PostgreSQL at localhost refused the connection: .*no encryption/,
    )
    expect(error).toContain('set sslmode to require or verify-full')
    expect(await isEncrypted(await open({ store: local('', 'tls_only') }))).toBe(true)
  })
})

describe('sslmode against a server without TLS', needs(server, serverWithoutTls), () => {
  const flags = (mode: string): Flags => ({
    store: serverWithoutTls.url,
    'store.sslmode': mode,
    ...(mode.startsWith('verify') && { 'store.sslrootcert': root }),
  })

  it.each(['disable', 'allow', 'prefer'])('sslmode %s connects without TLS', async (mode) => {
    expect(await isEncrypted(await open(flags(mode)))).toBe(false)
  })

  it.each(['require', 'verify-ca', 'verify-full'])('sslmode %s is refused in one sentence', async (mode) => {
    expect(await readError(flags(mode))).toBe(
      `STORE_TLS_FAILED: PostgreSQL at 127.0.0.1 does not offer TLS, which sslmode ${mode} requires: turn on ssl in postgresql.conf of the database server, or set sslmode to prefer or disable`,
    )
  })
})

describe('a server with old versions of TLS only', needs(server, serverWithoutTls), () => {
  it('sslmode prefer falls back to a connection without TLS, and require is refused in one sentence', async () => {
    const setVersions = (versions: readonly string[]) => execute(...versions, 'select pg_reload_conf()')
    const isEncryptedIfPreferred = async () => isEncrypted(await open({ store: local('sslmode=prefer') }))
    try {
      await setVersions([
        `alter system set ssl_min_protocol_version = 'TLSv1'`,
        `alter system set ssl_max_protocol_version = 'TLSv1.1'`,
      ])
      await expect.poll(isEncryptedIfPreferred).toBe(false)
      expect(await readError({ store: local('sslmode=require') })).toMatch(
        /^STORE_TLS_FAILED: the TLS handshake with PostgreSQL at localhost failed: .*; check ssl_min_protocol_version/,
      )
    } finally {
      await setVersions([
        'alter system reset ssl_max_protocol_version',
        'alter system reset ssl_min_protocol_version',
      ])
      await expect.poll(isEncryptedIfPreferred).toBe(true)
    }
  })
})

describe('client certificates', needs(server, serverWithoutTls), () => {
  const issued = authority.issue({ name: 'certified' })
  const certified = (flags: Flags): Flags => ({
    store: local('sslmode=require', 'certified'),
    ...flags,
  })

  it('a client certificate logs its user in, from files, variables and the URL', async () => {
    const cert = writePem('client.crt', issued.certificate)
    const key = writePem('client.key', issued.key)
    const [row] = await (
      await open(certified({ 'store.sslcert': `file:${cert}`, 'store.sslkey': key }))
    ).read({ name: 'user', text: 'select current_user as name' })
    expect(row?.name).toBe('certified')
    environment = { CLIENT_CERT: issued.certificate, CLIENT_KEY: issued.key }
    const byVariable = certified({ 'store.sslcert': 'env:CLIENT_CERT', 'store.sslkey': 'env:CLIENT_KEY' })
    expect(await isEncrypted(await open(byVariable))).toBe(true)
    const search = `sslmode=verify-full&sslrootcert=${root}&sslcert=${cert}&sslkey=${key}`
    expect(await isEncrypted(await open({ store: local(search, 'certified') }))).toBe(true)
  })

  it('a login without the client certificate that it needs is refused, and the message names the settings', async () => {
    const error = await readError(certified({}))
    expect(error).toMatch(/^STORE_TLS_FAILED: PostgreSQL at localhost refused the connection: .*certificate/)
    expect(error).toContain('set store.sslcert and store.sslkey')
  })

  it('a client certificate of another authority is refused in one sentence', async () => {
    const other = otherAuthority.issue({ name: 'certified' })
    environment = { CLIENT_CERT: other.certificate, CLIENT_KEY: other.key }
    const error = await readError(
      certified({ 'store.sslcert': 'env:CLIENT_CERT', 'store.sslkey': 'env:CLIENT_KEY' }),
    )
    // Depending on the network, the reason of the server arrives before or after the connection is reset.
    expect(error).toMatch(/^STORE_(TLS_FAILED|UNAVAILABLE): /)
    expect(error).toContain('accept the client certificate of store.sslcert (env:CLIENT_CERT)')
  })

  it('a key that does not belong to the certificate is refused without showing it', async () => {
    const other = authority.issue({ name: 'certified' })
    environment = { CLIENT_CERT: issued.certificate, CLIENT_KEY: other.key, NO_KEY: 'hush' }
    const flags = (key: string) => certified({ 'store.sslcert': 'env:CLIENT_CERT', 'store.sslkey': key })
    expect(await readError(flags('env:CLIENT_KEY'))).toBe(
      'SETTING_INVALID: the key of store.sslkey (env:CLIENT_KEY) does not belong to the certificate of store.sslcert (env:CLIENT_CERT): use the key with which the certificate was requested',
    )
    expect(await readError(flags('env:NO_KEY'))).toBe(
      'SETTING_INVALID: store.sslkey (env:NO_KEY) has no valid key: it must be PEM text with -----BEGIN PRIVATE KEY-----',
    )
    expect(await readError(flags('gone.key'))).toBe(
      'SECRET_UNAVAILABLE: store.sslkey (gone.key): the secret file gone.key cannot be read: ENOENT',
    )
  })
})

describe('replacing certificates', needs(server, serverWithoutTls), () => {
  /** Installs a certificate and waits until new connections get it. */
  async function install(issued: { certificate: string; key: string }): Promise<void> {
    await server.writeFiles({ 'server.crt': issued.certificate, 'server.key': issued.key })
    await execute('select pg_reload_conf()')
    const { fingerprint256 } = new X509Certificate(issued.certificate)
    await expect.poll(readServerFingerprint).toBe(fingerprint256)
  }

  async function readServerFingerprint(): Promise<string | undefined> {
    const client = new pg.Client({ connectionString: server.url, ssl: { rejectUnauthorized: false } })
    await client.connect()
    const stream = client.connection.stream as TLSSocket
    const { fingerprint256 } = stream.getPeerCertificate()
    await client.end()
    return fingerprint256
  }

  it('an expired certificate, and one that is not valid yet, are refused with the time', async () => {
    const validTo = new Date(Math.floor((Date.now() - dayMs) / 1_000) * 1_000)
    const validFrom = new Date(validTo.getTime() - dayMs)
    try {
      await install(authority.issue({ name: 'old', hosts: ['localhost'], validFrom, validTo }))
      const search = `sslmode=verify-ca&sslrootcert=${root}`
      expect(await readError({ store: local(search) })).toMatch(
        new RegExp(
          `^STORE_TLS_FAILED: the certificate of PostgreSQL at localhost expired at ${validTo.toISOString()}, and it is now .*: renew the certificate of the database server$`,
        ),
      )
      const later = { validFrom: new Date(Date.now() + dayMs), validTo: new Date(Date.now() + 2 * dayMs) }
      await install(authority.issue({ name: 'new', hosts: ['localhost'], ...later }))
      expect(await readError({ store: local(search) })).toMatch(
        /is not valid before .* and it is now .*: check the clocks/,
      )
    } finally {
      await install(serverCertificate)
    }
  })

  it('files are read again for new connections, and the last certificates stay in use while a file is missing', async () => {
    const path = writePem('rotated.crt', authority.certificate)
    const flags = { store: local(`sslmode=verify-full&sslrootcert=${path}`) }
    const connections = await open(flags)
    expect(await isEncrypted(connections)).toBe(true)
    // Holding connections makes the pool open new ones.
    const openAnother = () => connections.use(async () => isEncrypted(connections))
    try {
      await install(otherAuthority.issue({ name: 'rotated', hosts: ['localhost'] }))
      await expect(openAnother()).rejects.toThrow('is not signed by an authority')
      writePem('rotated.crt', otherAuthority.certificate)
      expect(await openAnother()).toBe(true)
      rmSync(path)
      expect(
        await connections.use(() => connections.use(() => connections.use(() => isEncrypted(connections)))),
      ).toBe(true)
      expect(warnings).toEqual([
        `the certificates for TLS to the store cannot be used; the last known ones stay in use: sslrootcert in the store URL (${path}): the secret file ${path} cannot be read: ENOENT`,
      ])
    } finally {
      await install(serverCertificate)
    }
  })
})

describe('notifications over TLS', needs(server, serverWithoutTls), () => {
  it('a server listens over a connection with TLS', async () => {
    const connections = await open({ store: local(`sslmode=verify-full&sslrootcert=${root}`) })
    const stop = new AbortController()
    const received: string[] = []
    const listening = connections.listen('tls_test', (payload) => received.push(payload), stop.signal)
    await expect
      .poll(async () => {
        await connections.read({ name: 'notify', text: `select pg_notify('tls_test', 'ready')` })
        return received.length
      })
      .toBeGreaterThan(0)
    stop.abort()
    await listening
  })
})

describe('a server that is not PostgreSQL', () => {
  /** Answers the request for TLS with these bytes, and counts connections. */
  async function listen(answer: string | undefined) {
    let connected = 0
    const listener = createServer((socket) => {
      connected++
      socket.on('error', () => {})
      socket.on('data', () => answer !== undefined && socket.write(answer))
    })
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const { port } = listener.address() as AddressInfo
    return { listener, store: `postgres://app@127.0.0.1:${port}/queues`, countConnected: () => connected }
  }

  it.each([
    ['answers something else', 'HTTP/1.1 400 Bad Request'],
    ['sends more before the handshake', 'SE'],
  ])('a server that %s is refused, and prefer does not continue without TLS', async (_what, answer) => {
    const { listener, store, countConnected } = await listen(answer)
    expect(await readError({ store })).toMatch(
      /^STORE_TLS_FAILED: PostgreSQL at .* did not answer the request for TLS as PostgreSQL does: check host and port/,
    )
    expect(countConnected()).toBe(1)
    listener.close()
  })

  it.each([undefined, 'S'])(
    'a server that is silent after %j is given up after the connect timeout',
    async (answer) => {
      const { listener, store } = await listen(answer)
      expect(await readError({ store, 'postgres.connect_timeout': '200ms' })).toMatch(
        /^STORE_UNAVAILABLE: cannot reach .*timeout/,
      )
      listener.close()
    },
  )
})

describe('a single connection', needs(server, serverWithoutTls), () => {
  it('a connection of a tool or a benchmark has the TLS parameters of its URL', async () => {
    const connect = async (search: string) => {
      const client = createPgClient(local(search))
      await client.connect()
      const { rows } = await client.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()')
      await client.end()
      return rows
    }
    expect(await connect('sslmode=require')).toEqual([{ ssl: true }])
    expect(await connect(`sslmode=verify-full&sslrootcert=${root}`)).toEqual([{ ssl: true }])
    expect(await connect('sslmode=disable')).toEqual([{ ssl: false }])
    await expect(connect(`sslmode=verify-full&sslrootcert=${otherRoot}`)).rejects.toThrow('is not signed by')
  })
})

describe('the command', needs(server, serverWithoutTls), () => {
  const launcher = fileURLToPath(new URL('../../../../bin/redrive.js', import.meta.url))

  it('a start without the required TLS reports one sentence and a hint, and no stack trace', async () => {
    const args = [launcher, 'serve', '--port', '0', '--store', serverWithoutTls.url]
    const env = { PATH: process.env.PATH, REDRIVE_TEST_SOURCE: '1', REDRIVE_STORE_SSLMODE: 'require' }
    const failed = await promisify(execFile)(process.execPath, args, { cwd: folder, env }).then(
      () => undefined,
      (error: Error & { stderr: string }) => error,
    )
    expect(failed?.stderr).toContain('does not offer TLS, which sslmode require requires')
    expect(failed?.stderr).toContain('Check sslmode, sslrootcert, sslcert and sslkey')
    expect(failed?.stderr).not.toMatch(/please report|^ +at /m)
  })
})

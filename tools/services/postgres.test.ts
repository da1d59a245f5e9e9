import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { describe, expect, it, vi } from 'vitest'
import { createDatabase } from './index.ts'
import { registryUrlVariable } from './registry-server.ts'
import { needs, requireService } from './require-service.ts'

const postgres = await requireService('postgres')
const own = await requireService('privatePostgres')

describe('the shared PostgreSQL', needs(postgres), () => {
  it('the shared PostgreSQL has version 17 and runs with fsync', async () => {
    expect(await queryValue(postgres.url, 'select version()')).toMatch(/^PostgreSQL 17\./)
    expect(await queryValue(postgres.url, 'show fsync')).toBe('on')
    expect(await queryValue(postgres.url, 'show synchronous_commit')).toBe('on')
  })

  it('each caller gets an empty database, which can be dropped while sessions are open', async () => {
    const [left, right] = await Promise.all([createDatabase(), createDatabase()])
    await queryValue(left.url, 'create table kept (id int)')
    expect(
      await queryValue(right.url, "select count(*)::int from pg_tables where schemaname = 'public'"),
    ).toBe(0)

    const session = new Client({ connectionString: left.url })
    // Dropping the database ends this session with an error, as intended.
    session.on('error', () => {})
    await session.connect()
    await Promise.all([left.drop(), right.drop()])
    await left.drop()
    await expect(queryValue(left.url, 'select 1')).rejects.toThrow(/does not exist/)
  })

  it('the database sorts text linguistically, so that code that relies on byte order fails here', async () => {
    const sorted = "select string_agg(name, ' ' order by name) from (values ('b'), ('B'), ('a')) as t (name)"
    expect(await queryValue(postgres.url, sorted)).toBe('a b B')
  })
})

describe('a private PostgreSQL', needs(own), () => {
  it('a private PostgreSQL keeps committed data over a crash and a restart, on the same address', async () => {
    await queryValue(own.url, 'create table kept as select 42 as answer')
    await own.stop('immediate')
    await expect(queryValue(own.url, 'select 1')).rejects.toThrow(/ECONNREFUSED/)
    await own.start()
    expect(await queryValue(own.url, 'select answer from kept')).toBe(42)

    await own.stop()
    await own.start()
    expect(await queryValue(own.url, 'select answer from kept')).toBe(42)
    await own.end()
  })
})

describe('a PostgreSQL whose owner is killed', needs(own), () => {
  it('a PostgreSQL whose owner is killed stops, and its folder is removed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'redrive-orphan-'))
    await chmod(folder, 0o711)
    const { [registryUrlVariable]: _registry, REDRIVE_TEST_POSTGRES: _configured, ...env } = process.env
    const owner = spawn(process.execPath, [join(import.meta.dirname, 'fixtures/start-postgres.ts')], {
      env: { ...env, TMPDIR: folder },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = (await once(owner.stdout, 'data')) as [Buffer]
    const { url } = JSON.parse(line.toString('utf8')) as { url: string }
    expect(await queryValue(url, 'select 1')).toBe(1)
    expect(await readdir(folder)).toHaveLength(1)

    owner.kill('SIGKILL')
    await vi.waitUntil(async () => (await readdir(folder)).length === 0, { timeout: 15_000, interval: 50 })
    await expect(queryValue(url, 'select 1')).rejects.toThrow(/ECONNREFUSED/)
    await rmdir(folder)
  })
})

async function queryValue(url: string, query: string): Promise<unknown> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query({ text: query, rowMode: 'array' })
    return rows[0]?.[0]
  } finally {
    await client.end()
  }
}

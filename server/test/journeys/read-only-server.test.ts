/** A server with `read_only` and a database user that may only read. */
import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type Database } from '../../../tools/services/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { routes } from '../../src/api/routes.ts'
import { type RunningServer, startServer } from '../../src/server.ts'
import type { StoreTarget } from '../../src/storage/open-storage.ts'
import { sendRequest } from '../http/store-server.ts'
import { createReadableLog, type LogLine, testSettings } from '../http/test-server.ts'

const postgres = await requireService('postgres')

describe('a read-only server', needs(postgres), () => {
  const reader = `redrive_reader_${randomBytes(4).toString('hex')}`
  let database: Database
  let readerTarget: StoreTarget
  let writable: RunningServer
  let readOnly: RunningServer
  let lines: LogLine[]

  const runOnServer = async (statements: string): Promise<void> => {
    const client = new Client({ connectionString: database.url })
    await client.connect()
    await client.query(statements).finally(() => client.end())
  }
  const startOn = async (store: StoreTarget, isReadOnly: boolean) => {
    const readable = createReadableLog('warn')
    const server = await startServer({
      settings: testSettings({ read_only: isReadOnly }),
      store,
      log: readable.log,
    })
    return { server, lines: readable.lines }
  }

  beforeAll(async () => {
    database = await createDatabase()
    await runOnServer(`create role ${reader} login password 'reads'`)
    const url = new URL(database.url)
    url.username = reader
    url.password = 'reads'
    readerTarget = { kind: 'postgres', url: url.href }
    writable = (await startOn({ kind: 'postgres', url: database.url }, false)).server
    await runOnServer(
      `grant usage on schema redrive, dlq to ${reader}; grant select on all tables in schema redrive, dlq to ${reader}`,
    )
    const call = (path: string, body: object) => sendRequest(`${writable.url}${path}`, 'POST', body)
    await call('/api/v1/queues', { name: 'orders.dead' })
    await call('/api/v1/queues', { name: 'orders', policy: { dead_queue: 'orders.dead' } })
    const letter = { original_value: { text: '{}' }, error_message: 'network down', original_topic: 'orders' }
    const captured = await call('/api/v1/letters', { queue: 'orders.dead', letters: [letter] })
    expect([captured.status, JSON.stringify(captured.body)]).toEqual([200, expect.any(String)])
    ;({ server: readOnly, lines } = await startOn(readerTarget, true))
  })
  afterAll(async () => {
    await readOnly?.stop(0)
    await writable?.stop(0)
    await runOnServer(`drop owned by ${reader}; drop role ${reader}`)
    await database.drop()
  })

  it('every read answers the same as on a server that may write', async () => {
    const [letter] = (await sendRequest(`${writable.url}/api/v1/letters`, 'GET')).body.letters
    const [group] = (await sendRequest(`${writable.url}/api/v1/groups`, 'GET')).body.groups
    const [cause] = (await sendRequest(`${writable.url}/api/v1/causes`, 'GET')).body.causes
    const names: Record<string, string> = { name: 'orders.dead', topic: 'orders', id: letter.id }
    const idsByPath: Record<string, string> = {
      groups: String(group.id),
      causes: String(cause.id),
      namespaces: '_system',
    }
    const reads = routes
      .filter(({ method, path }) => method === 'GET' && path.startsWith('/api/v1/'))
      .filter(
        ({ path }) =>
          !/campaigns\/|alerts\/|workers\/\{|archive\/|webhooks\/|group-jobs\/|\/info$|\/export$/.test(path),
      )
      .map(({ path }) =>
        path.replaceAll(
          /\{(\w+)\}/g,
          (_, name: string) => idsByPath[path.split('/')[3] ?? ''] ?? names[name] ?? '',
        ),
      )
    expect(reads.length).toBeGreaterThan(12)
    for (const path of reads) {
      const [here, there] = await Promise.all(
        [readOnly, writable].map(({ url }) => sendRequest(url + path, 'GET')),
      )
      // Each server has the findings of its own last check.
      expect([path, here?.status, { ...here?.body, read_at: null }]).toEqual([
        path,
        200,
        { ...there?.body, read_at: null },
      ])
    }
    for (const path of ['/health', '/readyz', '/metrics', '/api/v1/info', '/api/v1/letters/export', '/']) {
      expect([path, (await fetch(readOnly.url + path)).status]).toEqual([path, 200])
    }
    const stats = await sendRequest(`${readOnly.url}/v1/queue.stats`, 'POST', { queueName: 'orders.dead' })
    expect(stats.status).toBe(200)
  })

  it('every route that would write is refused before its body is read', async () => {
    const isRead = (permission: string): boolean =>
      permission === 'public' || /\.(read|list|stats|info)$/.test(permission)
    const writes = routes.filter(({ permission }) => !isRead(permission))
    expect(writes.length).toBeGreaterThan(25)
    for (const { method, path, permission } of writes) {
      const answer = await fetch(readOnly.url + path.replaceAll(/[{}]/g, ''), {
        method,
        ...(method !== 'GET' && { headers: { 'content-type': 'application/json' }, body: '{' }),
      })
      const text = await answer.text()
      // The Queue API has only one status for a refused request.
      const expected = path.startsWith('/v1/') ? 400 : 403
      const sentence = `this server is read-only (read_only is set), and ${method} `
      expect([path, answer.status, text]).toEqual([path, expected, expect.stringContaining(sentence)])
      expect(text).toContain(`needs the permission ${permission}`)
    }
  })

  it('the log says once what a read-only server does not do, and no background work fails', async () => {
    expect(lines.map(({ msg }) => msg)).toEqual([
      expect.stringContaining('READ-ONLY: requests that write are refused'),
    ])
  })

  it('a schema that is not current is refused without writing', async () => {
    await using empty = await emptyDatabase()
    await expect(startOn({ kind: 'postgres', url: empty.url }, true)).rejects.toMatchObject({
      code: 'STORE_MISSING',
    })
    const client = new Client({ connectionString: empty.url })
    await client.connect()
    const { rows } = await client.query(`select to_regnamespace('redrive') as schema`)
    await client.end()
    expect(rows).toEqual([{ schema: null }])
  })
})

async function emptyDatabase(): Promise<Database & AsyncDisposable> {
  const database = await createDatabase()
  return { ...database, [Symbol.asyncDispose]: () => database.drop() }
}

/** The key of the first start exists once, however many servers start together. */
import { afterEach, describe, expect, it } from 'vitest'
import { type RunningServer, startServer } from '../../src/server.ts'
import { createTestStore, needsOf } from '../conformance/support/test-stores.ts'
import { sendRequest } from '../http/store-server.ts'
import { createReadableLog, testSettings } from '../http/test-server.ts'
import { bearer } from './keys-server.ts'

describe('the first start of several servers', needsOf('PostgreSQL'), () => {
  const cleanups: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  })

  it('servers that start together print one key, which works at all of them', async () => {
    const place = await createTestStore('PostgreSQL')
    cleanups.push(place.drop)
    const keys: string[] = []
    const { log, lines } = createReadableLog()
    const start = (): Promise<RunningServer> =>
      startServer({
        settings: testSettings({ access: 'keys' }),
        store: place.target,
        log,
        onFirstKey: (key) => void keys.push(key),
      })
    const servers = await Promise.all([start(), start(), start()])
    cleanups.push(() => Promise.all(servers.map((server) => server.stop(0))))
    expect(keys).toHaveLength(1)
    const [key = ''] = keys
    for (const { url } of servers) {
      expect((await sendRequest(`${url}/api/v1/queues`, 'GET', undefined, bearer(key))).status).toBe(200)
    }
    const url = servers[0]?.url ?? ''
    const users = await sendRequest(`${url}/v1/users.list`, 'POST', {}, bearer(key))
    expect(users.body.items.map(({ username }: { username: string }) => username).sort()).toEqual([
      'admin',
      'anonymous',
    ])
    const created = await sendRequest(`${url}/v1/apikeys.list`, 'POST', {}, bearer(key))
    expect(created.body.items).toHaveLength(1)
    expect(JSON.stringify(lines)).not.toContain(key)
  })
})

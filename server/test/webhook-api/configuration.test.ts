import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Settings } from '../../src/config/settings/settings.ts'
import { parseSettingsFile } from '../../src/config/settings/settings-file.ts'
import { parseConfiguredConsumers, parseConfiguredEntities } from '../../src/config/webhook-entities.ts'
import { type RunningServer, startServer } from '../../src/server.ts'
import { createTestStore, needsOf, type TestStore } from '../conformance/support/test-stores.ts'
import { createReadableLog, testSettings } from '../http/test-server.ts'

const parse = (yaml: string): Partial<Settings> => {
  const given = new Map(parseSettingsFile('redrive.yaml', yaml).map(({ name, text }) => [name, text]))
  const [producers, channels, consumers] = ['producers', 'channels', 'consumers'].map(
    (name) => given.get(`webhooks.${name}`) ?? '[]',
  ) as [string, string, string]
  return {
    'webhooks.producers': parseConfiguredEntities(producers, 'webhooks.producers'),
    'webhooks.channels': parseConfiguredEntities(channels, 'webhooks.channels'),
    'webhooks.consumers': parseConfiguredConsumers(consumers, 'webhooks.consumers'),
  }
}

const yaml = `
webhooks:
  producers:
    - { id: shop, name: The shop, token: shop-token }
  channels:
    - id: orders
      token: "0123"
  consumers:
    - { channel: orders, id: billing, token: billing-token, callback_url: "http://192.0.2.1/a" }
    - { channel: orders, id: pulled, callback_url: "http://192.0.2.1/b", type: pull }
`

describe.each(['SQLite file', 'PostgreSQL'] as const)('configured webhooks (%s)', (name) => {
  let store: TestStore
  const running: RunningServer[] = []
  beforeEach(async () => {
    store = await createTestStore(name)
  })
  const stopAll = () => Promise.all(running.splice(0).map((server) => server.stop(0)))
  afterEach(async () => {
    await stopAll()
    await store.drop()
  })
  const start = async (settings: Partial<Settings>): Promise<RunningServer> => {
    const { log } = createReadableLog('info')
    const server = await startServer({ settings: testSettings(settings), store: store.target, log })
    running.push(server)
    return server
  }
  const restart = async (settings: Partial<Settings>): Promise<RunningServer> => {
    await stopAll()
    return start(settings)
  }
  // biome-ignore lint/suspicious/noExplicitAny: tests read the fields that they expect, at any depth
  const get = async ({ url }: RunningServer, path: string): Promise<any> => (await fetch(url + path)).json()
  const put = (server: RunningServer, path: string, form: Record<string, string>, since = '') =>
    fetch(server.url + path, {
      method: 'PUT',
      body: new URLSearchParams(form),
      headers: since === '' ? {} : { 'If-Unmodified-Since': since },
    })

  it('the objects of the settings file exist when the server has started', needsOf(name), async () => {
    const server = await start(parse(yaml))
    expect(await get(server, '/producer/shop')).toMatchObject({ Name: 'The shop', Token: 'shop-token' })
    expect(await get(server, '/channel/orders')).toMatchObject({ Name: 'orders', Token: '0123' })
    const billing = await get(server, '/channel/orders/consumer/billing')
    expect(billing).toMatchObject({ CallbackURL: 'http://192.0.2.1/a', Type: 'push', Token: 'billing-token' })
    expect(await get(server, '/channel/orders/consumer/pulled')).toMatchObject({
      Type: 'pull',
      Token: expect.stringMatching(/^[A-Za-z0-9]{12}$/),
    })
    const status = await get(server, '/_status')
    expect(JSON.stringify(status)).not.toContain('token')
    expect(status).toEqual({
      SeedData: {
        Producers: [{ ID: 'shop', Name: 'The shop' }],
        Channels: [{ ID: 'orders', Name: 'orders' }],
        Consumers: [
          { ID: 'billing', Name: 'billing', Channel: 'orders' },
          { ID: 'pulled', Name: 'pulled', Channel: 'orders' },
        ],
      },
      AppStatus: 3,
    })
    const { entries } = await get(server, '/api/v1/audit?action=producer.put')
    expect(entries).toMatchObject([{ actor: 'system', target: 'shop', reason: 'configuration' }])
  })

  it('a changed list overwrites the objects, and an unchanged list does not', needsOf(name), async () => {
    const first = await start(parse(yaml))
    const generated = (await get(first, '/channel/orders/consumer/pulled')).Token
    const modified = (await fetch(`${first.url}/producer/shop`)).headers.get('last-modified') ?? ''
    const changed = await put(first, '/producer/shop', { name: 'By hand', token: 'other' }, modified)
    expect(changed.status).toBe(200)
    const second = await restart(parse(yaml))
    expect(await get(second, '/producer/shop')).toMatchObject({ Name: 'By hand', Token: 'other' })
    const third = await restart(parse(yaml.replace('192.0.2.1/a', '192.0.2.1/c')))
    expect(await get(third, '/producer/shop')).toMatchObject({ Name: 'The shop', Token: 'shop-token' })
    expect(await get(third, '/channel/orders/consumer/billing')).toMatchObject({
      CallbackURL: 'http://192.0.2.1/c',
    })
    expect(await get(third, '/channel/orders/consumer/pulled')).toMatchObject({ Token: generated })
    const fourth = await restart({})
    expect(await get(fourth, '/producer/shop')).toMatchObject({ Name: 'The shop' })
  })

  it('a consumer of an unknown channel stops the start, and nothing is stored', needsOf(name), async () => {
    const settings = parse(yaml.replace('channel: orders, id: billing', 'channel: nowhere, id: billing'))
    await expect(start(settings)).rejects.toMatchObject({ code: 'SETTING_INVALID' })
    const server = await start({})
    expect(await get(server, '/producers')).toMatchObject({ Result: [] })
  })

  it('changed rules of delivery apply to consumers that exist already', needsOf(name), async () => {
    await start(parse(yaml))
    const rules = { 'webhooks.retries_max': 9, 'webhooks.retry_delays': ['7s'], 'webhooks.timeout': 4_000 }
    const server = await restart({ ...parse(yaml), ...rules })
    for (const consumer of ['billing', 'pulled']) {
      const queue = await get(server, `/api/v1/queues/webhook:orders:${consumer}`)
      expect(queue.policy).toMatchObject({
        attempts_max: 9,
        lease_timeout: '6.25s',
        retry: { delays: ['7s'] },
      })
    }
  })

  it('servers that start at the same time agree', needsOf(name), async () => {
    if (name === 'SQLite file') return // One server at a time.
    const servers = await Promise.all(Array.from({ length: 4 }, () => start(parse(yaml))))
    const tokens = await Promise.all(
      servers.map(async (server) => (await get(server, '/channel/orders/consumer/pulled')).Token),
    )
    expect(new Set(tokens).size).toBe(1)
    const { entries } = await get(servers[0] as RunningServer, '/api/v1/audit?action=consumer.put')
    expect(entries).toHaveLength(2)
  })
})

describe('the lists of webhook objects in settings', () => {
  it.each([
    ['webhooks.producers[0].id is missing', '[{"name":"x"}]'],
    ['webhooks.producers has a twice', '[{"id":"a"},{"id":"a"}]'],
    ['webhooks.producers[0].tokn is unknown', '[{"id":"a","tokn":"x"}]'],
    ['webhooks.producers must be a list', '{"a":1}'],
    ['webhooks.producers is not a list of maps', '['],
    ['webhooks.producers[0].id has 256 characters', JSON.stringify([{ id: 'x'.repeat(256) }])],
  ])('a list of producers is refused with the place: %s', (message, text) => {
    expect(() => parseConfiguredEntities(text, 'webhooks.producers')).toThrow(message)
  })

  it.each([
    ['callback_url is not an absolute URL', { channel: 'c', id: 'k', callback_url: '/x' }],
    ['type is "both"', { channel: 'c', id: 'k', callback_url: 'http://a', type: 'both' }],
    ['channel is missing', { id: 'k', callback_url: 'http://a' }],
  ])('a consumer is refused: %s', (message, row) => {
    expect(() => parseConfiguredConsumers(JSON.stringify([row]), 'webhooks.consumers')).toThrow(message)
  })
})

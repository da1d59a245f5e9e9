/**
 * A failover of the database: the primary is killed or hangs under load, its synchronous standby is promoted,
 * and the servers, whose store URL names both, continue without losing anything that they acknowledged.
 */
import { afterAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { openStorage } from '../../src/storage/open-storage.ts'
import { createPgClient } from '../../src/storage/postgres/connection/tls-connection.ts'
import { requirement } from '../conformance/support/machine-requirements.ts'
import { pollUntil } from '../http/poll-until.ts'
import { findPostgresProcesses, signalAll } from '../http/postgres-processes.ts'
import { startServerProcess } from '../http/server-process.ts'
import { startTestServer } from '../http/test-server.ts'
import { createQueueClient, type QueueClient } from '../queue-api/queue-client.ts'

const linux = requirement('/proc', process.platform === 'linux' ? undefined : 'only Linux has it')
const pair = await requireService('privatePostgresPair')
const otherPair = await requireService('privatePostgresPair')
const thirdPair = await requireService('privatePostgresPair')
let frozen: readonly number[] = []
afterAll(async () => {
  signalAll(frozen, 'SIGCONT')
  for (const each of [pair, otherPair, thirdPair]) if (each.missing === undefined) await each.end()
})

const timeout = 120_000
type HealthBody = { checks: { 'queues:storage': readonly { output: string }[] } }
const queue = 'orders'
const timeouts = { lease_timeout: '3s', expire_timeout: '24h' }
const short = { request_timeout: '2s' }

function joinHosts(urls: readonly string[]): string {
  const [first = '', ...others] = urls
  return first.replace(/(@[^/]*)/, `$1${others.map((url) => `,${new URL(url).host}`).join('')}`)
}

/** Everything that was acknowledged, by the text of the item. */
type Acknowledged = Readonly<{ produced: Set<string>; completed: Set<string>; captured: Set<string> }>
type Load = Acknowledged &
  Readonly<{
    leasedAfterComplete: string[]
    /** Resolves when that many more of each kind were acknowledged. */
    waitFor(more: number): Promise<void>
    stop(): Promise<void>
  }>

/** Produces, captures, leases and completes over all servers until it is stopped. */
function startLoad(clients: readonly (QueueClient & Readonly<{ url: string }>)[]): Load {
  const acknowledged: Acknowledged = { produced: new Set(), completed: new Set(), captured: new Set() }
  const leasedAfterComplete: string[] = []
  let isStopped = false
  const repeat = async (work: (round: number) => Promise<void>) => {
    for (let round = 0; !isStopped; round++) {
      // A refused call is repeated with another item: its outcome is unknown.
      await work(round).catch(() => new Promise((resolve) => setTimeout(resolve, 20)))
    }
  }
  const produce = async (client: QueueClient, text: string) => {
    await client.call('queue.produce', { queue_name: queue, ...short, items: [{ utf8: text }] })
    acknowledged.produced.add(text)
  }
  const capture = async (url: string, text: string) => {
    const response = await fetch(`${url}/api/v1/letters`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ queue: 'dead', letters: [{ original_value: text, original_topic: queue }] }),
    })
    if (!response.ok) throw new Error(await response.text())
    acknowledged.captured.add(text)
  }
  const consume = async (client: QueueClient, clientId: string) => {
    const target = { queue_name: queue, ...short }
    const leased = await client.call('queue.lease', { ...target, client_id: clientId, batch_size: 5 })
    for (const { id, bytes } of leased.items) {
      const text = Buffer.from(bytes, 'base64').toString()
      if (acknowledged.completed.has(text)) leasedAfterComplete.push(text)
      await client.call('queue.complete', { ...target, partition: leased.partition, ids: [id] })
      acknowledged.completed.add(text)
    }
  }
  const loops = clients.flatMap((client, index) => [
    repeat((round) => produce(client, `a${index}-${round}`)),
    repeat((round) => produce(client, `b${index}-${round}`)),
    repeat((round) => capture(client.url, `c${index}-${round}`)),
    repeat((round) => consume(client, `worker-${index}-${round}`)),
  ])
  const stop = async () => {
    isStopped = true
    await Promise.all(loops)
  }
  const waitFor = async (more: number) => {
    const wanted = Object.values(acknowledged).map((set) => [set, set.size + more] as const)
    await pollUntil(
      async () => wanted.every(([set, size]) => set.size >= size),
      (isReached) => isReached,
      timeout,
    )
  }
  return { ...acknowledged, leasedAfterComplete, waitFor, stop }
}

describe('a PostgreSQL cluster with a synchronous standby', needs(pair, otherPair, thirdPair), () => {
  const urls = () => [pair.primary.url, pair.standby.url]

  it('a server finds the primary wherever it is in the store URL', { timeout }, async () => {
    const storage = await openStorage({ kind: 'postgres', url: hostParameters(urls().toReversed()) })
    await storage.write([{ op: 'create-queue', queue: { name: 'found' }, now: storage.clock.now() }])
    expect(await storage.getQueue('found')).toMatchObject({ name: 'found' })
    await storage.close()
  })

  it('a server whose hosts are all standbys reports that none accepts writes', { timeout }, async () => {
    const url = hostParameters([pair.standby.url, pair.standby.url])
    const server = await startTestServer({}, { kind: 'postgres', url })
    const health = (await (await fetch(`${server.url}/health`)).json()) as HealthBody
    expect(health.checks['queues:storage'][0]?.output).toBe('the store is read-only: 25006')
    expect(server.lines).toContainEqual(
      expect.objectContaining({ reason: expect.stringMatching(/127\.0\.0\.1:\d+ accepts no writes/) }),
    )
  })

  it.each([
    ['killed', pair],
    ['frozen', otherPair],
    ['made read-only', thirdPair],
  ] as const)(
    'nothing that was acknowledged is lost when the primary is %s under load and its standby promoted',
    { timeout, ...needs(linux) },
    async (how, used) => {
      const urls = [used.primary.url, used.standby.url]
      const servers = [
        await startServerProcess({ kind: 'postgres', url: joinHosts(urls) }),
        await startServerProcess({ kind: 'postgres', url: joinHosts(urls.toReversed()) }),
      ]
      const clients = servers.map(({ url }) => ({ ...createQueueClient(() => url, 'json'), url }))
      await createQueues(clients[0])
      const load = startLoad(clients)
      await load.waitFor(100)
      if (how === 'killed') await used.primary.stop('kill')
      else if (how === 'made read-only') await makeReadOnly(used.primary.url)
      else {
        frozen = await findPostgresProcesses(used.primary.url)
        signalAll(frozen, 'SIGSTOP')
      }
      await used.promote()
      await load.waitFor(100)
      for (const { url } of servers) await waitUntilReady(url)
      await load.stop()
      for (const server of servers) await server.kill()
      // As a cluster manager fences the old primary.
      await used.primary.stop('kill')
      signalAll(frozen, 'SIGCONT')
      await expectNothingLost(load, hostParameters(urls), clients.length)
    },
  )
})

/** For the open connections, too. */
async function makeReadOnly(url: string): Promise<void> {
  const client = createPgClient(url)
  await client.connect()
  await client.query('alter system set default_transaction_read_only = on')
  await client.query('select pg_reload_conf()')
  await client.end()
}

async function createQueues(client: QueueClient | undefined): Promise<void> {
  if (client === undefined) throw new Error('no server was started')
  await client.call('queues.create', { queue_name: 'dead', requested_partitions: 1, ...timeouts })
  const spec = { queue_name: queue, requested_partitions: 2, dead_queue: 'dead', max_attempts: 100 }
  await client.call('queues.create', { ...spec, ...timeouts })
}

async function waitUntilReady(url: string): Promise<void> {
  await pollUntil(
    async () => (await fetch(`${url}/readyz`)).status,
    (status) => status === 200,
    timeout,
  )
}

async function expectNothingLost(load: Load, url: string, workers: number): Promise<void> {
  expect(load.leasedAfterComplete).toEqual([])
  const storage = await openStorage({ kind: 'postgres', url })
  const read = async (name: string) => {
    const texts = new Set<string>()
    for (let id = ''; ; ) {
      const page = await storage.listItems({ queue: name, from: { id, isIncluded: false }, countMax: 5_000 })
      for (const { payload } of page) texts.add(Buffer.from(payload).toString())
      if (page.length === 0) return texts
      id = page.at(-1)?.id ?? ''
    }
  }
  const [left, letters] = [await read(queue), await read('dead')]
  expect([...load.captured].filter((text) => !letters.has(text))).toEqual([])
  expect([...load.completed].filter((text) => left.has(text))).toEqual([])
  const counts = await storage.readCounts({ queue })
  const sum = (name: 'accepted' | 'completed') => counts.reduce((total, each) => total + each[name], 0)
  // An item that was produced is there, or a worker completed it; some completions were not acknowledged.
  const gone = [...load.produced].filter((text) => !left.has(text) && !load.completed.has(text))
  expect(gone.length).toBeLessThanOrEqual(sum('completed') - load.completed.size)
  expect(gone.length).toBeLessThanOrEqual(workers)
  expect(sum('accepted')).toBeGreaterThanOrEqual(load.produced.size)
  expect(await storage.verify()).toEqual([])
  await storage.close()
}

/** The form of the URL behind the settings. */
function hostParameters(urls: readonly string[]): string {
  const url = new URL(urls[0] ?? '')
  url.searchParams.set('host', urls.map((each) => new URL(each).hostname).join(','))
  url.searchParams.set('port', urls.map((each) => new URL(each).port).join(','))
  return url.href
}

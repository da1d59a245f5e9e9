/** Servers on both stores for tests of `/api/v1/dlq`, with an operator's and a worker's calls. */
import { afterEach, beforeAll, beforeEach } from 'vitest'
import type { Settings } from '../../src/config/settings/settings.ts'
import { type Answer, describeServer, type StoreServer } from '../http/store-server.ts'
import type { LogLine } from '../http/test-server.ts'
import { createQueueClient, type QueueClient } from '../queue-api/queue-client.ts'

export type { Answer } from '../http/store-server.ts'
/** An item that becomes a dead letter: its payload and its error message. */
export type DyingItem = Readonly<{ text?: string; payload?: Uint8Array; kind?: string; message?: string }>

export interface DlqServer extends Pick<QueueClient, 'call'> {
  readonly url: string
  readonly lines: readonly LogLine[]
  /** The path is relative to `/api/v1/dlq`. */
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  post(path: string, body?: unknown): Promise<Answer>
  delete(path: string): Promise<Answer>
  /** Sends a request to any path of the server. */
  request: StoreServer['request']
  /** Creates a queue, and a dead queue with the same name and `.dead`. */
  createQueue(name: string, deadPolicy?: object): Promise<void>
  /** Creates a dead letter per item, one second after the other. */
  createLetters(queue: string, ...items: readonly DyingItem[]): Promise<void>
  /** Leases all waiting items of the queue. */
  lease(queue: string): Promise<readonly { id: string; partition: number }[]>
  /** Leases and completes all waiting items of the queue, and returns how many. */
  completeAll(queue: string): Promise<number>
  /** Leases all waiting items of the queue and declares them dead with this error message. */
  failAll(queue: string, message: string): Promise<number>
  /** Returns the ids of the open letters, newest first. */
  listIds(): Promise<string[]>
  now(): Promise<string>
  advance(duration: string): Promise<void>
}

/** Describes tests for both stores. All queues are deleted after each test. */
export function describeDlqServers(
  subject: string,
  body: (api: DlqServer) => void,
  settings: Partial<Settings> = {},
): void {
  for (const store of ['SQLite memory', 'PostgreSQL'] as const) {
    describeServer(`${subject} (${store})`, store, settings, (server) => {
      beforeAll(async () => void (await server.setClock({ now: '2030-11-15T12:00:00Z' })))
      beforeEach(async () => {
        server.lines.length = 0
        await server.setClock({ advance: '100h' })
      })
      afterEach(() => deleteQueues(server))
      body(createDlqServer(server))
    })
  }
}

async function deleteQueues({ call }: StoreServer): Promise<void> {
  const { queues } = await call('GET', '/api/v1/queues?limit=1000')
  const names: string[] = queues.map((queue: { name: string }) => queue.name)
  // A dead queue can only be deleted after the queues that use it.
  const isDead = (name: string): number => Number(name.endsWith('.dead'))
  for (const name of names.toSorted((a, b) => isDead(a) - isDead(b))) {
    await call('DELETE', `/api/v1/queues/${encodeURIComponent(name)}?force=true`)
  }
}

function createDlqServer(server: StoreServer): DlqServer {
  const { request, call } = server
  const worker = createWorker(server)
  const advance = async (duration: string): Promise<void> =>
    void (await server.setClock({ advance: duration }))
  return {
    get url() {
      return server.url
    },
    lines: server.lines,
    request,
    get: (path, headers) => request('GET', `/api/v1/dlq${path}`, undefined, headers),
    post: (path, body) => request('POST', `/api/v1/dlq${path}`, body),
    delete: (path) => request('DELETE', `/api/v1/dlq${path}`),
    createQueue: async (name, deadPolicy = {}) => {
      await call('POST', '/api/v1/queues', { name: `${name}.dead`, policy: deadPolicy })
      await call('POST', '/api/v1/queues', {
        name,
        policy: { dead_queue: `${name}.dead`, lease_timeout: '1h' },
      })
    },
    createLetters: async (queue, ...items) => {
      for (const { text = '{}', payload = Buffer.from(text), kind = '', message = '' } of items) {
        await call('POST', `/api/v1/queues/${encodeURIComponent(queue)}/items`, {
          items: [{ payload: { base64: Buffer.from(payload).toString('base64') }, kind }],
        })
        await worker.failAll(queue, message)
        await advance('1s')
      }
    },
    ...worker,
    listIds: async () => {
      const { data } = await call('GET', '/api/v1/dlq?page_size=100')
      return data.items.map(({ id }: { id: string }) => id)
    },
    now: () => server.setClock({ advance: '0s' }),
    advance,
  }
}

/** A worker that uses the Queue API. */
function createWorker(server: StoreServer): Pick<DlqServer, 'call' | 'lease' | 'completeAll' | 'failAll'> {
  const { call } = createQueueClient(() => server.url, 'json')
  const lease: DlqServer['lease'] = async (queue) => {
    const leased = await call('queue.lease', {
      queue_name: queue,
      batch_size: 1_000,
      client_id: 'worker',
      request_timeout: '5s',
    })
    const partition: number = leased.partition ?? 0
    return leased.items.map(({ id }: { id: string }) => ({ id, partition }))
  }
  const settleAll = async (
    queue: string,
    settle: (id: string, partition: number) => Promise<unknown>,
  ): Promise<number> => {
    const items = await lease(queue)
    for (const { id, partition } of items) await settle(id, partition)
    return items.length
  }
  return {
    call,
    lease,
    completeAll: (queue) =>
      settleAll(queue, (id, partition) =>
        call('queue.complete', { queue_name: queue, partition, request_timeout: '5s', ids: [id] }),
      ),
    failAll: (queue, message) =>
      settleAll(queue, (id, partition) => {
        const error = Buffer.from(JSON.stringify({ message })).toString('latin1')
        const headers = message === '' ? {} : { 'x-redrive-error': error }
        const items = [{ id, dead: true }]
        return call('queue.retry', { queue_name: queue, partition, items }, { headers })
      }),
  }
}

/** A well-formed id of no letter. */
export const unknownId = '2aaaaaaaaaaaaaaaaaaaaaaaaaa'
export const unknownUuid = '01234567-89ab-cdef-0123-456789abcdef'

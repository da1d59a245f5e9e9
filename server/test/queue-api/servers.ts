/** Servers on all stores for tests of the Queue API, called in JSON and in protobuf. */
import type { StoreName } from '../conformance/support/test-stores.ts'
import { type ClockChange, describeServer, type StoreServer } from '../http/store-server.ts'
import type { LogLine } from '../http/test-server.ts'
import { type Body, createQueueClient, type Format, type QueueClient } from './queue-client.ts'

export const noonText = '2030-11-15T12:00:00Z'

export interface QueueServer extends QueueClient {
  readonly url: string
  readonly lines: readonly LogLine[]
  /** Whether stored items survive a restart. */
  readonly isDurable: boolean
  /** Creates a queue with a unique name and returns its name. */
  createQueue(spec?: Record<string, unknown>): Promise<string>
  /** Produces an item per text. */
  produce(queue: string, ...texts: readonly string[]): Promise<void>
  lease(queue: string, count?: number, clientId?: string): Promise<Body>
  /** Freezes or moves the clock. All work that is due by then is done when it resolves. */
  setClock(change: ClockChange): Promise<string>
  /** A held queue accepts requests but executes none of them. */
  hold(queue: string, isHeld: boolean): Promise<void>
  /** Stops the server and starts another one on the same store. */
  restart(): Promise<void>
}

const stores: readonly StoreName[] = ['SQLite memory', 'SQLite file', 'PostgreSQL']

/**
 * Describes tests for all stores, each with one format: both formats on every store would double the time.
 */
export function describeQueueServers(subject: string, body: (api: QueueServer) => void): void {
  for (const [index, store] of stores.entries()) {
    describeQueueServer(`${subject} (${store})`, store, index % 2 === 0 ? 'json' : 'protobuf', body)
  }
}

/** Describes tests for both formats on one store. */
export function describeFormats(subject: string, body: (api: QueueServer) => void): void {
  for (const format of ['json', 'protobuf'] as const) {
    describeQueueServer(`${subject} (${format})`, 'SQLite memory', format, body)
  }
}

export function describeQueueServer(
  subject: string,
  store: StoreName,
  format: Format,
  body: (api: QueueServer) => void,
): void {
  describeServer(subject, store, {}, (server) => body(createQueueServer(server, format)))
}

function createQueueServer(server: StoreServer, format: Format): QueueServer {
  const client = createQueueClient(() => server.url, format)
  let created = 0
  return {
    ...client,
    lines: server.lines,
    isDurable: server.isDurable,
    get url() {
      return server.url
    },
    createQueue: async (spec = {}) => {
      const name = `queue-${++created}`
      await client.call('queues.create', {
        queue_name: name,
        lease_timeout: '1m',
        expire_timeout: '24h',
        requested_partitions: 1,
        ...(spec as object),
      })
      return name
    },
    produce: async (queue, ...texts) => {
      const items = texts.map((utf8) => ({ utf8 }))
      await client.call('queue.produce', { queue_name: queue, request_timeout: '1m', items })
    },
    lease: (queue, count = 1, clientId = 'worker') =>
      client.call('queue.lease', {
        queue_name: queue,
        batch_size: count,
        client_id: clientId,
        request_timeout: '5s',
      }),
    setClock: server.setClock,
    hold: async (queue, isHeld) =>
      void (await server.call('POST', '/_test/hold', { queue_name: queue, hold: isHeld })),
    restart: async () => {
      await server.stop(0)
      await server.start()
    },
  }
}

/** Returns the payloads of leased items as texts. */
export function readTexts(items: readonly { bytes?: string; payload?: string }[] = []): string[] {
  return items.map(({ bytes, payload }) => Buffer.from(bytes ?? payload ?? '', 'base64').toString())
}

/** Servers on both stores for tests of dead letters and campaigns in `/api/v1`. */
import { type Client, createClient, type Envelope } from '../../../client/src/index.ts'
import { type Answer, type ClockChange, describeServer } from '../http/store-server.ts'
import type { LogLine } from '../http/test-server.ts'

export type { Answer, Body } from '../http/store-server.ts'

export interface LettersServer {
  readonly url: string
  readonly lines: readonly LogLine[]
  readonly client: Client
  get(path: string): Promise<Answer>
  post(path: string, body?: unknown): Promise<Answer>
  patch(path: string, body: unknown): Promise<Answer>
  put(path: string, body: unknown): Promise<Answer>
  /** Creates a queue with a unique name, and its dead queue. */
  createQueues(deadPolicy?: object): Promise<Readonly<{ queue: string; dead: string }>>
  /** Captures a letter per envelope and returns their ids. */
  capture(dead: string, ...envelopes: readonly Envelope[]): Promise<string[]>
  setClock(change: ClockChange): Promise<string>
  stop(graceMs: number): Promise<void>
  start(): Promise<void>
}

export const noonText = '2030-11-15T12:00:00.000000Z'

// Short intervals, so that background work follows a change of the clock quickly.
const settings = {
  'letters.campaign_interval': 20,
  'letters.redrive_interval': 20,
  'letters.retention_interval': 50,
}

export function describeLettersServers(subject: string, body: (api: LettersServer) => void): void {
  for (const store of ['SQLite memory', 'PostgreSQL'] as const) {
    describeServer(`${subject} (${store})`, store, settings, (server) => {
      let created = 0
      body({
        get url() {
          return server.url
        },
        get client() {
          return createClient({ url: server.url, retriesMax: 0 })
        },
        lines: server.lines,
        get: (path) => server.request('GET', path),
        post: (path, sent = {}) => server.request('POST', path, sent),
        patch: (path, sent) => server.request('PATCH', path, sent),
        put: (path, sent) => server.request('PUT', path, sent),
        createQueues: async (policy = {}) => {
          const dead = `dead-${++created}`
          const queue = `queue-${created}`
          await server.call('POST', '/api/v1/queues', { name: dead, policy })
          const queuePolicy = { dead_queue: dead, attempts_max: 1 }
          await server.call('POST', '/api/v1/queues', { name: queue, policy: queuePolicy })
          return { queue, dead }
        },
        capture: async (queue, ...letters) => {
          if (letters.length === 0) return []
          const { letters: captured } = await server.call('POST', '/api/v1/letters', { queue, letters })
          return captured.map(({ id }: { id: string }) => id)
        },
        setClock: server.setClock,
        stop: server.stop,
        start: server.start,
      })
    })
  }
}

/** Creates the envelope of an item that `queue` could not process. */
export function createEnvelope(queue: string, more: Envelope = {}): Envelope {
  return {
    original_queue: queue,
    original_value: 'the payload',
    error_details: {
      exception_class: 'TimeoutError',
      message: 'upstream timeout',
      stack_trace: 'at call (a.js:1)',
    },
    retry_count: 3,
    worker_instance: 'worker-1',
    ...more,
  }
}

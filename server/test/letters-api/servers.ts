/** Real servers on both stores for tests of our API of dead letters, with a clock that tests set. */
import { afterAll, beforeAll, describe } from 'vitest'
import { type Client, createClient, type Envelope } from '../../../client/src/index.ts'
import { type RunningServer, startServer } from '../../src/server.ts'
import { createPlace, needsOf, type Place } from '../conformance/stores.ts'
import { type LogLine, readableLog, testSettings } from '../http/running.ts'

/** The JSON of an answer: what tests look at is said by the tests. */
// biome-ignore lint/suspicious/noExplicitAny: see above
export type Body = any
export type Answer = Readonly<{ status: number; body: Body; headers: Headers }>

export interface Served {
  readonly url: string
  readonly lines: readonly LogLine[]
  readonly client: Client
  get(path: string): Promise<Answer>
  post(path: string, body?: unknown): Promise<Answer>
  patch(path: string, body: unknown): Promise<Answer>
  /** A queue with a name of its own, and its dead queue. */
  queues(dead?: object): Promise<Readonly<{ queue: string; dead: string }>>
  /** Captures as many letters as there are envelopes, and gives their ids. */
  capture(dead: string, ...envelopes: readonly Envelope[]): Promise<string[]>
  clock(set: { now: string } | { advance: string } | { resume: true }): Promise<void>
  /** Stops the server and gives it back when it has ended. */
  stop(graceMs: number): Promise<void>
  restart(): Promise<void>
}

export const noonText = '2030-11-15T12:00:00.000000Z'

export function describeServers(subject: string, body: (api: Served) => void): void {
  for (const store of ['SQLite memory', 'PostgreSQL'] as const) {
    describe(`${subject} (${store})`, needsOf(store), () => {
      let place: Place
      let server: RunningServer
      let made = 0
      const { log, lines } = readableLog('info')
      const start = async (): Promise<void> => {
        const settings = testSettings({
          'test.hooks': true,
          'letters.campaign_interval': 20,
          'letters.auto_interval': 20,
          'letters.retention_interval': 50,
        })
        server = await startServer({ settings, store: place.target, log })
      }
      beforeAll(async () => {
        place = await createPlace(store)
        await start()
      })
      afterAll(async () => {
        await server?.stop(0)
        await place?.drop()
      })

      const ask = async (method: string, path: string, body?: unknown): Promise<Answer> => {
        const response = await fetch(`${server.url}${path}`, {
          method,
          ...(body !== undefined && {
            headers: { 'content-type': 'application/json' },
            body: typeof body === 'string' ? body : JSON.stringify(body),
          }),
        })
        const text = await response.text()
        return {
          status: response.status,
          body: text === '' ? undefined : JSON.parse(text),
          headers: response.headers,
        }
      }
      const must = async (answer: Promise<Answer>): Promise<Body> => {
        const { status, body } = await answer
        if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`)
        return body
      }
      body({
        get url() {
          return server.url
        },
        get client() {
          return createClient({ url: server.url, retriesMax: 0 })
        },
        lines,
        get: (path) => ask('GET', path),
        post: (path, sent = {}) => ask('POST', path, sent),
        patch: (path, sent) => ask('PATCH', path, sent),
        queues: async (policy = {}) => {
          const dead = `dead-${++made}`
          const queue = `queue-${made}`
          await must(ask('POST', '/api/v1/queues', { name: dead, policy }))
          await must(
            ask('POST', '/api/v1/queues', { name: queue, policy: { dead_queue: dead, attempts_max: 1 } }),
          )
          return { queue, dead }
        },
        capture: async (queue, ...letters) => {
          if (letters.length === 0) return []
          const { letters: captured } = await must(ask('POST', '/api/v1/letters', { queue, letters }))
          return captured.map(({ id }: { id: string }) => id)
        },
        clock: (set) => must(ask('POST', '/_test/clock', set)),
        stop: (graceMs) => server.stop(graceMs),
        restart: start,
      })
    })
  }
}

/** An envelope of something that `queue` could not process. */
export function envelope(queue: string, more: Envelope = {}): Envelope {
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

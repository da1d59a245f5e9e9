/** Real servers on real stores with a clock that tests set, and an operator who asks them about dead letters. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from 'vitest'
import type { Settings } from '../../src/config/settings.ts'
import { type RunningServer, startServer } from '../../src/server.ts'
import { createPlace, needsOf, type Place, type StoreName } from '../conformance/stores.ts'
import { type LogLine, readableLog, testSettings } from '../http/running.ts'
import { type Speaker, speaker } from '../queue-api/speak.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look at the fields they expect, wherever they are
type Body = any
export type Answer = Readonly<{ status: number; headers: Headers; body: Body }>
/** What dies: its payload, and what is reported of it. */
export type Dying = Readonly<{ text?: string; payload?: Uint8Array; kind?: string; message?: string }>

export interface Desk extends Pick<Speaker, 'call'> {
  readonly url: string
  readonly lines: readonly LogLine[]
  /** Below `/api/v1/dlq`. */
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  post(path: string, body?: unknown): Promise<Answer>
  delete(path: string): Promise<Answer>
  /** Any path and method of the server. */
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** A queue with a dead queue that is called the same with `.dead`. */
  queue(name: string, deadPolicy?: object): Promise<void>
  /** Produces items and declares each dead, one second after the other, in order. */
  die(queue: string, ...items: readonly Dying[]): Promise<void>
  /** Leases all that waits in the queue. */
  lease(queue: string): Promise<readonly { id: string; partition: number }[]>
  /** What a worker does with everything that waits in the queue. */
  completeAll(queue: string): Promise<number>
  failAll(queue: string, message: string): Promise<number>
  /** The ids of the open letters, newest first. */
  ids(): Promise<string[]>
  now(): Promise<string>
  advance(duration: string): Promise<void>
}

const stores: readonly StoreName[] = ['SQLite memory', 'PostgreSQL']

export function describeDesks(
  subject: string,
  body: (desk: Desk) => void,
  settings: Partial<Settings> = {},
): void {
  for (const store of stores) describeDesk(subject, store, settings, body)
}

function describeDesk(
  subject: string,
  store: StoreName,
  settings: Partial<Settings>,
  body: (desk: Desk) => void,
): void {
  describe(`${subject} (${store})`, needsOf(store), () => {
    let place: Place
    let server: RunningServer
    const { log, lines } = readableLog('info')
    beforeAll(async () => {
      place = await createPlace(store)
      const all = testSettings({ 'test.hooks': true, ...settings })
      server = await startServer({ settings: all, store: place.target, log })
      await ask('POST', '/_test/clock', { now: '2030-11-15T12:00:00Z' })
    })
    beforeEach(async () => {
      lines.length = 0
      await ask('POST', '/_test/clock', { advance: '100h' })
    })
    afterEach(deleteQueues)
    afterAll(async () => {
      await server?.stop(0)
      await place?.drop()
    })

    const ask: Desk['ask'] = async (method, path, body, headers = {}) => {
      const response = await fetch(server.url + path, {
        method,
        headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      return { status: response.status, headers: response.headers, body: JSON.parse(text) }
    }
    const must = async (method: string, path: string, body?: unknown): Promise<Body> => {
      const answer = await ask(method, path, body)
      expect(answer, `${method} ${path}`).toMatchObject({ status: 200 })
      return answer.body
    }
    async function deleteQueues(): Promise<void> {
      const { queues } = await must('GET', '/api/v1/queues?limit=1000')
      const names: string[] = queues.map((queue: { name: string }) => queue.name)
      // Dead queues last: they are in use until then.
      for (const name of names.toSorted(
        (a, b) => Number(a.endsWith('.dead')) - Number(b.endsWith('.dead')),
      )) {
        await must('DELETE', `/api/v1/queues/${encodeURIComponent(name)}?force=true`)
      }
    }

    const spoken = speaker(() => server.url, 'json')
    const lease: Desk['lease'] = async (queue) => {
      const leased = await spoken.call('queue.lease', {
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
    const declareDead = async (queue: string, id: string, partition: number, message = '') => {
      const error = Buffer.from(JSON.stringify({ error_message: message })).toString('latin1')
      const items = [{ id, dead: true }]
      await spoken.call(
        'queue.retry',
        { queue_name: queue, partition, items },
        message === '' ? {} : { headers: { 'x-redrive-error': error } },
      )
    }

    const desk: Desk = {
      get url() {
        return server.url
      },
      lines,
      call: spoken.call,
      ask,
      get: (path, headers) => ask('GET', `/api/v1/dlq${path}`, undefined, headers),
      post: (path, body) => ask('POST', `/api/v1/dlq${path}`, body),
      delete: (path) => ask('DELETE', `/api/v1/dlq${path}`),
      queue: async (name, deadPolicy = {}) => {
        await must('POST', '/api/v1/queues', { name: `${name}.dead`, policy: deadPolicy })
        await must('POST', '/api/v1/queues', { name, policy: { dead_queue: `${name}.dead`, lease: '1h' } })
      },
      die: async (queue, ...items) => {
        for (const { text = '{}', payload = Buffer.from(text), kind = '', message = '' } of items) {
          await must('POST', `/api/v1/queues/${encodeURIComponent(queue)}/items`, {
            items: [{ payload: Buffer.from(payload).toString('base64'), kind }],
          })
          await settleAll(queue, (id, partition) => declareDead(queue, id, partition, message))
          await desk.advance('1s')
        }
      },
      lease,
      completeAll: (queue) =>
        settleAll(queue, (id, partition) =>
          spoken.call('queue.complete', {
            queue_name: queue,
            partition,
            request_timeout: '5s',
            ids: [id],
          }),
        ),
      failAll: (queue, message) =>
        settleAll(queue, (id, partition) => declareDead(queue, id, partition, message)),
      ids: async () => {
        const { data } = await must('GET', '/api/v1/dlq?page_size=100')
        return data.items.map(({ id }: { id: string }) => id)
      },
      now: async () => (await must('POST', '/_test/clock', { advance: '0s' })).now,
      advance: async (duration) => void (await must('POST', '/_test/clock', { advance: duration })),
    }
    body(desk)
  })
}

/** A well-formed id that stands for nothing. */
export const unknownId = '2aaaaaaaaaaaaaaaaaaaaaaaaaa'
export const unknownUuid = '01234567-89ab-cdef-0123-456789abcdef'

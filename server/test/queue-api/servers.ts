/** Real servers on real stores, with a clock that tests set, spoken to in both formats. */
import { afterAll, beforeAll, describe } from 'vitest'
import { type RunningServer, startServer } from '../../src/server.ts'
import { createPlace, needsOf, type Place, type StoreName } from '../conformance/stores.ts'
import { type LogLine, readableLog, testSettings } from '../http/running.ts'
import { type Format, type Speaker, speaker } from './speak.ts'

export const noonText = '2030-11-15T12:00:00Z'

export interface Served extends Speaker {
  readonly url: string
  readonly lines: readonly LogLine[]
  /** Whether what is stored outlives the server. */
  readonly isDurable: boolean
  /** Creates a queue with a name of its own, and says its name. */
  queue(spec?: Record<string, unknown>): Promise<string>
  /** Produces one item per text, and gives nothing back: the protocol does not. */
  produce(queue: string, ...texts: readonly string[]): Promise<void>
  // biome-ignore lint/suspicious/noExplicitAny: see Body
  lease(queue: string, count?: number, clientId?: string): Promise<any>
  /** Stops the clock at a time, or moves it. All that is due by then has happened when it resolves. */
  clock(set: { now: string } | { advance: string } | { resume: true }): Promise<void>
  /** Held, a queue takes requests and does none of them. */
  hold(queue: string, isHeld: boolean): Promise<void>
  /** Stops the server and starts another one on the same store. */
  restart(): Promise<void>
}

const stores: readonly StoreName[] = ['SQLite memory', 'SQLite file', 'PostgreSQL']

/** Every store; the formats take turns, so that each is tried on each kind of work without doubling all of it. */
export function describeServers(subject: string, body: (api: Served) => void): void {
  for (const [index, store] of stores.entries()) {
    describeServer(`${subject} (${store})`, store, index % 2 === 0 ? 'json' : 'protobuf', body)
  }
}

/** One store, both formats. */
export function describeFormats(subject: string, body: (api: Served) => void): void {
  for (const format of ['json', 'protobuf'] as const) {
    describeServer(`${subject} (${format})`, 'SQLite memory', format, body)
  }
}

export function describeServer(
  subject: string,
  store: StoreName,
  format: Format,
  body: (api: Served) => void,
): void {
  describe(subject, needsOf(store), () => {
    let place: Place
    let server: RunningServer
    let queues = 0
    const { log, lines } = readableLog('info')
    const start = async (): Promise<void> => {
      server = await startServer({ settings: testSettings({ 'test.hooks': true }), store: place.target, log })
    }
    const hook = async (path: string, what: object): Promise<void> => {
      const response = await fetch(`${server.url}/_test/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(what),
      })
      if (!response.ok) throw new Error(await response.text())
    }
    beforeAll(async () => {
      place = await createPlace(store)
      await start()
    })
    afterAll(async () => {
      await server?.stop(0)
      await place?.drop()
    })

    const spoken = speaker(() => server.url, format)
    body({
      ...spoken,
      lines,
      isDurable: store !== 'SQLite memory',
      get url() {
        return server.url
      },
      queue: async (spec = {}) => {
        const name = `queue-${++queues}`
        await spoken.call('queues.create', {
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
        await spoken.call('queue.produce', { queue_name: queue, request_timeout: '1m', items })
      },
      lease: (queue, count = 1, clientId = 'worker') =>
        spoken.call('queue.lease', {
          queue_name: queue,
          batch_size: count,
          client_id: clientId,
          request_timeout: '5s',
        }),
      clock: (set) => hook('clock', set),
      hold: (queue, isHeld) => hook('hold', { queue_name: queue, hold: isHeld }),
      restart: async () => {
        await server.stop(0)
        await start()
      },
    })
  })
}

/** The payloads of leased items, as texts. */
export function textsOf(items: readonly { bytes?: string; payload?: string }[] = []): string[] {
  return items.map(({ bytes, payload }) => Buffer.from(bytes ?? payload ?? '', 'base64').toString())
}

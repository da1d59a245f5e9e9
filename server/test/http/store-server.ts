/** Real servers on real stores, with test hooks: tests set the clock and read the log. */
import { afterAll, beforeAll, describe } from 'vitest'
import type { Settings } from '../../src/config/settings/settings.ts'
import { type RunningServer, startServer } from '../../src/server.ts'
import {
  createTestStore,
  needsOf,
  type StoreName,
  type TestStore,
} from '../conformance/support/test-stores.ts'
import { checkDocumentedError } from './documented-errors.ts'
import { createReadableLog, type LogLine, testSettings } from './test-server.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read the fields that they expect, at any depth
export type Body = any
export type Answer = Readonly<{ status: number; headers: Headers; body: Body }>
export type ClockChange = Readonly<{ now: string } | { advance: string } | { resume: true }>

export interface StoreServer {
  readonly url: string
  readonly lines: LogLine[]
  /** Whether stored items survive a restart. */
  readonly isDurable: boolean
  /** Sends a request. A text is sent as it is, any other body as JSON. */
  request(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Returns the body of an answer that must have status 200. */
  call(method: string, path: string, body?: unknown): Promise<Body>
  /** Sets the clock and returns the new time. All work that is due by then is done when it resolves. */
  setClock(change: ClockChange): Promise<string>
  start(): Promise<void>
  stop(graceMs: number): Promise<void>
}

/** Describes tests that share one server on a new store. */
export function describeServer(
  subject: string,
  store: StoreName,
  settings: Partial<Settings>,
  body: (server: StoreServer) => void,
): void {
  describe(subject, needsOf(store), () => {
    let place: TestStore
    let running: RunningServer
    const { log, lines } = createReadableLog('info')
    // A call that starts a campaign answers after the campaign's first step: do not wait long for it.
    const allSettings = testSettings({ 'test.hooks': true, 'letters.campaign_interval': 50, ...settings })
    const start = async (): Promise<void> => {
      running = await startServer({ settings: allSettings, store: place.target, log })
    }
    beforeAll(async () => {
      place = await createTestStore(store)
      await start()
    })
    afterAll(async () => {
      await running?.stop(0)
      await place?.drop()
    })
    const request: StoreServer['request'] = (method, path, sent, headers) =>
      sendRequest(running.url + path, method, sent, headers)
    const call: StoreServer['call'] = async (method, path, sent) => {
      const answer = await request(method, path, sent)
      if (answer.status === 200) return answer.body
      throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    }
    body({
      get url() {
        return running.url
      },
      lines,
      isDurable: store !== 'SQLite memory',
      request,
      call,
      setClock: async (change) => (await call('POST', '/_test/clock', change)).now,
      start,
      stop: (graceMs) => running.stop(graceMs),
    })
  })
}

export async function sendRequest(
  url: string,
  method: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const parsed: Body = text === '' ? undefined : JSON.parse(text)
  if (response.status >= 400 && parsed?.error?.code !== undefined)
    checkDocumentedError(method, url, response.status, parsed.error.code)
  return { status: response.status, headers: response.headers, body: parsed }
}

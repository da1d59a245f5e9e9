import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../test/manual-clock.ts'
import { createClient } from '../index.ts'

type Given = Response | Error

/** A client whose first calls get the given answers and errors, in order; every later call succeeds. */
function createTestClient(...given: Given[]) {
  const clock = new ManualClock()
  const delaysMs: number[] = []
  let calls = 0
  let lastMs = clock.elapsedMs()
  const client = createClient({
    url: 'http://redrive.example',
    clock,
    random: () => 1,
    fetch: async () => {
      delaysMs.push(clock.elapsedMs() - lastMs)
      lastMs = clock.elapsedMs()
      const next = given[calls++] ?? Response.json({ code: 200 })
      if (next instanceof Error) throw next
      return next
    },
  })
  return { client, clock, delaysMs, calls: () => calls }
}

const answer = (status: number, message: string, headers: Record<string, string> = {}) =>
  Response.json({ code: status, message }, { status, headers })
const overloaded = () => answer(454, 'queue is overloaded; try again later')
const lost = () => new TypeError('fetch failed', { cause: { code: 'UND_ERR_SOCKET' } })
const refused = () =>
  new TypeError('fetch failed', {
    cause: new AggregateError([Object.assign(new Error(), { code: 'ECONNREFUSED' })]),
  })
const gateway = (status: number) => new Response('<h1>Bad Gateway</h1>', { status })

const failures: readonly [name: string, given: () => Given, isNotDone: boolean][] = [
  ['an overloaded queue', overloaded, true],
  ['a busy queue', () => answer(454, 'request timeout; the queue is busy, try again'), true],
  ['a server that is stopping', () => answer(453, 'service is shutting down'), true],
  ['a queue that is closing', () => answer(453, 'queue is shutting down'), true],
  ['too many requests', () => answer(429, 'slow down'), true],
  ['a refused connection', refused, true],
  ['a lost connection', lost, false],
  ['a network failure without a code', () => new TypeError('Failed to fetch'), false],
  ['a store that failed', () => answer(454, 'internal error, try your request again'), false],
  ['a gateway that lost its connection to the server', () => gateway(502), false],
  ['a gateway timeout', () => gateway(504), false],
  ['a truncated answer', () => new Response('{"code":2', { status: 200 }), false],
]

describe.each(failures)('after %s', (_, given, isNotDone) => {
  it(`produce is ${isNotDone ? '' : 'not '}repeated`, async () => {
    const { client, clock, calls } = createTestClient(given())
    const produced = client.produce('q', 'x').then(
      () => 'done',
      (error: unknown) => error,
    )
    await clock.advance(60_000)
    if (isNotDone) expect(await produced).toBe('done')
    else expect(await produced).toMatchObject({ isRetryable: false, isOutcomeUnknown: true })
    expect(calls()).toBe(isNotDone ? 2 : 1)
    expect(clock.timers).toBe(0)
  })

  it('produce with isDuplicateAllowed is repeated', async () => {
    const { client, clock, calls } = createTestClient(given())
    const produced = client.produce('q', 'x', { isDuplicateAllowed: true })
    await clock.advance(60_000)
    await produced
    expect(calls()).toBe(2)
  })

  it('complete, retry, getQueueStats and deleteItems are repeated', async () => {
    const id = '0'.repeat(27)
    for (const call of [
      (client: ReturnType<typeof createClient>) => client.complete('q', 0, [id]),
      (client: ReturnType<typeof createClient>) => client.retry('q', 0, [{ id }]),
      (client: ReturnType<typeof createClient>) => client.getQueueStats('q'),
      (client: ReturnType<typeof createClient>) => client.deleteItems('q', 0, [id]),
    ]) {
      const { client, clock, calls } = createTestClient(given())
      const done = call(client)
      await clock.advance(60_000)
      await done
      expect(calls()).toBe(2)
    }
  })
})

describe('a repeated call', () => {
  it('a call doubles the delay before each repeat, and rejects as retryable after retriesMax repeats', async () => {
    const { client, clock, delaysMs } = createTestClient(...Array.from({ length: 9 }, overloaded))
    const failed = client.produce('q', 'x').catch((error: unknown) => error)
    await clock.advance(60_000)
    expect(await failed).toMatchObject({
      code: 'QUEUE_OVERLOADED',
      isRetryable: true,
      isOutcomeUnknown: false,
    })
    expect(delaysMs).toEqual([0, 100, 200, 400, 800, 1_600])
    expect(clock.timers).toBe(0)
  })

  it('a call waits as long as the Retry-After header requests before it is repeated', async () => {
    const { client, clock, delaysMs } = createTestClient(answer(429, 'slow down', { 'Retry-After': '7' }))
    const done = client.produce('q', 'x')
    await clock.advance(60_000)
    await done
    expect(delaysMs).toEqual([0, 7_000])
  })

  it('isOutcomeUnknown stays set after a lost answer, even if a repeat gets a definite error', async () => {
    const gone = answer(400, `invalid storage id; '${'0'.repeat(27)}' does not exist`)
    const { client, clock } = createTestClient(lost(), gone)
    const failed = client.complete('q', 0, ['0'.repeat(27)]).catch((error: unknown) => error)
    await clock.advance(60_000)
    expect(await failed).toMatchObject({ code: 'ITEM_NOT_FOUND', isRetryable: false, isOutcomeUnknown: true })
  })

  it('deleteQueue succeeds if the queue is missing after a lost answer, and rejects otherwise', async () => {
    const gone = () => answer(400, "queue does not exist; no such queue named 'q'")
    const { client, clock } = createTestClient(lost(), gone(), gone())
    const deleted = client.deleteQueue('q')
    await clock.advance(60_000)
    await deleted
    await expect(client.deleteQueue('q')).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' })
  })

  it('a call that the server refused, or that hit a defect of the server, is not repeated', async () => {
    for (const [given, isOutcomeUnknown] of [
      [answer(400, 'items cannot be empty; at least one item is required'), false],
      [answer(401, 'api key is invalid'), false],
      [answer(500, 'Internal Error'), true],
      [gateway(404), false],
    ] as const) {
      const { client, calls } = createTestClient(given)
      await expect(client.produce('q', 'x')).rejects.toMatchObject({ isRetryable: false, isOutcomeUnknown })
      expect(calls()).toBe(1)
    }
  })

  it('an aborted call ends immediately and leaves no timer and no listener', async () => {
    const { client, clock, calls } = createTestClient(overloaded())
    const stopping = new AbortController()
    const failed = client.produce('q', 'x', { signal: stopping.signal }).catch((error: unknown) => error)
    await clock.advance(50)
    expect(clock.timers).toBe(1)
    stopping.abort('enough')
    expect(await failed).toBe('enough')
    expect(clock.timers).toBe(0)
    expect(calls()).toBe(1)
    const other = new AbortController()
    await client.getQueueStats('q', { signal: other.signal }).catch(() => {})
    expect(getEventListeners(other.signal, 'abort')).toHaveLength(0)
  })
})

describe('a call', () => {
  it('a call rejects after answerMsMax; a lease call after waitMs plus answerMsMax', async () => {
    const clock = new ManualClock()
    const fetch: typeof globalThis.fetch = (_, init) =>
      new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)))
    const client = createClient({ clock, fetch, answerMsMax: 1_000 })
    const outcomes: string[] = []
    const record = (name: string) => (error: { code: string }) => void outcomes.push(`${name} ${error.code}`)
    void client.produce('q', 'x').catch(record('produce'))
    void client.produce('q', 'x', { answerMsMax: 3_000 }).catch(record('patient'))
    void client.lease('q', { clientId: 'c', waitMs: 5_000 }).catch(record('lease'))
    await clock.advance(999)
    expect(outcomes).toEqual([])
    await clock.advance(1)
    expect(outcomes).toEqual(['produce ANSWER_TIMEOUT'])
    await clock.advance(4_999)
    expect(outcomes).toEqual(['produce ANSWER_TIMEOUT', 'patient ANSWER_TIMEOUT'])
    await clock.advance(1)
    expect(outcomes.at(-1)).toBe('lease ANSWER_TIMEOUT')
    expect(clock.timers).toBe(0)
  })

  it('a call sends the API key, and a request_timeout shorter than answerMsMax', async () => {
    let sent: RequestInit | undefined
    const fetch: typeof globalThis.fetch = async (_, init) => {
      sent = init
      return Response.json({ code: 200 })
    }
    await createClient({ fetch, apiKey: 'qtr-live-x', answerMsMax: 1_000 }).produce('q', 'x')
    expect(sent?.headers).toMatchObject({
      Authorization: 'Bearer qtr-live-x',
      'Content-Type': 'application/json',
    })
    expect(JSON.parse(String(sent?.body))).toMatchObject({ request_timeout: '800ms', items: [{ utf8: 'x' }] })
  })
})

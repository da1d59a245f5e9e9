import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { ManualClock } from '../test/manual-clock.ts'
import { createClient } from './index.ts'

type Given = Response | Error

/** What goes wrong on the wire, in order; then all is well. */
function aClient(...given: Given[]) {
  const clock = new ManualClock()
  const restsMs: number[] = []
  let calls = 0
  let lastMs = clock.elapsedMs()
  const client = createClient({
    url: 'http://redrive.example',
    clock,
    random: () => 1,
    fetch: async () => {
      restsMs.push(clock.elapsedMs() - lastMs)
      lastMs = clock.elapsedMs()
      const next = given[calls++] ?? Response.json({ code: 200 })
      if (next instanceof Error) throw next
      return next
    },
  })
  return { client, clock, restsMs, calls: () => calls }
}

const said = (status: number, message: string, headers: Record<string, string> = {}) =>
  Response.json({ code: status, message }, { status, headers })
const overloaded = () => said(454, 'queue is overloaded; try again later')
const lost = () => new TypeError('fetch failed', { cause: { code: 'UND_ERR_SOCKET' } })
const refused = () =>
  new TypeError('fetch failed', {
    cause: new AggregateError([Object.assign(new Error(), { code: 'ECONNREFUSED' })]),
  })
const gateway = (status: number) => new Response('<h1>Bad Gateway</h1>', { status })

const kinds: readonly [name: string, given: () => Given, isNotDone: boolean][] = [
  ['an overloaded queue', overloaded, true],
  ['a busy queue', () => said(454, 'request timeout; the queue is busy, try again'), true],
  ['a server that stops', () => said(453, 'service is shutting down'), true],
  ['a queue that closes', () => said(453, 'queue is shutting down'), true],
  ['too many requests', () => said(429, 'slow down'), true],
  ['a refused connection', refused, true],
  ['a lost connection', lost, false],
  ['a failure of which nothing is known', () => new TypeError('Failed to fetch'), false],
  ['a store that failed', () => said(454, 'internal error, try your request again'), false],
  ['a gateway that lost the server', () => gateway(502), false],
  ['a gateway that lost patience', () => gateway(504), false],
  ['an answer that is cut off', () => new Response('{"code":2', { status: 200 }), false],
]

describe.each(kinds)('after %s', (_, given, isNotDone) => {
  it(`produce is ${isNotDone ? '' : 'not '}repeated`, async () => {
    const { client, clock, calls } = aClient(given())
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

  it('produce is repeated when twice is fine', async () => {
    const { client, clock, calls } = aClient(given())
    const produced = client.produce('q', 'x', { isTwiceFine: true })
    await clock.advance(60_000)
    await produced
    expect(calls()).toBe(2)
  })

  it('what may be done twice is repeated', async () => {
    const id = '0'.repeat(27)
    for (const call of [
      (client: ReturnType<typeof createClient>) => client.complete('q', 0, [id]),
      (client: ReturnType<typeof createClient>) => client.retry('q', 0, [{ id }]),
      (client: ReturnType<typeof createClient>) => client.stats('q'),
      (client: ReturnType<typeof createClient>) => client.deleteItems('q', 0, [id]),
    ]) {
      const { client, clock, calls } = aClient(given())
      const done = call(client)
      await clock.advance(60_000)
      await done
      expect(calls()).toBe(2)
    }
  })
})

describe('a repeated call', () => {
  it('rests longer each time, gives up after the last, and says that it may be made again', async () => {
    const { client, clock, restsMs } = aClient(...Array.from({ length: 9 }, overloaded))
    const failed = client.produce('q', 'x').catch((error: unknown) => error)
    await clock.advance(60_000)
    expect(await failed).toMatchObject({
      code: 'QUEUE_OVERLOADED',
      isRetryable: true,
      isOutcomeUnknown: false,
    })
    expect(restsMs).toEqual([0, 100, 200, 400, 800, 1_600])
    expect(clock.timers).toBe(0)
  })

  it('rests as long as the server asks', async () => {
    const { client, clock, restsMs } = aClient(said(429, 'slow down', { 'Retry-After': '7' }))
    const done = client.produce('q', 'x')
    await clock.advance(60_000)
    await done
    expect(restsMs).toEqual([0, 7_000])
  })

  it('remembers that an answer was lost, whatever comes after', async () => {
    const gone = said(400, `invalid storage id; '${'0'.repeat(27)}' does not exist`)
    const { client, clock } = aClient(lost(), gone)
    const failed = client.complete('q', 0, ['0'.repeat(27)]).catch((error: unknown) => error)
    await clock.advance(60_000)
    expect(await failed).toMatchObject({ code: 'ITEM_NOT_FOUND', isRetryable: false, isOutcomeUnknown: true })
  })

  it('takes a queue that is gone after a lost answer for deleted', async () => {
    const gone = () => said(400, "queue does not exist; no such queue named 'q'")
    const { client, clock } = aClient(lost(), gone(), gone())
    const deleted = client.deleteQueue('q')
    await clock.advance(60_000)
    await deleted
    await expect(client.deleteQueue('q')).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' })
  })

  it('is not one that the server refused, nor a defect of the server', async () => {
    for (const [given, isOutcomeUnknown] of [
      [said(400, 'items cannot be empty; at least one item is required'), false],
      [said(401, 'api key is invalid'), false],
      [said(500, 'Internal Error'), true],
      [gateway(404), false],
    ] as const) {
      const { client, calls } = aClient(given)
      await expect(client.produce('q', 'x')).rejects.toMatchObject({ isRetryable: false, isOutcomeUnknown })
      expect(calls()).toBe(1)
    }
  })

  it('ends at once when it is told to, and leaves nothing behind', async () => {
    const { client, clock, calls } = aClient(overloaded())
    const stopping = new AbortController()
    const failed = client.produce('q', 'x', { signal: stopping.signal }).catch((error: unknown) => error)
    await clock.advance(50)
    expect(clock.timers).toBe(1)
    stopping.abort('enough')
    expect(await failed).toBe('enough')
    expect(clock.timers).toBe(0)
    expect(calls()).toBe(1)
    const other = new AbortController()
    await client.stats('q', { signal: other.signal }).catch(() => {})
    expect(getEventListeners(other.signal, 'abort')).toHaveLength(0)
  })
})

describe('a call', () => {
  it('may take only so long, and a lease as long as it waits on top', async () => {
    const clock = new ManualClock()
    const fetch: typeof globalThis.fetch = (_, init) =>
      new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)))
    const client = createClient({ clock, fetch, answerMsMax: 1_000 })
    const outcomes: string[] = []
    const note = (name: string) => (error: { code: string }) => void outcomes.push(`${name} ${error.code}`)
    void client.produce('q', 'x').catch(note('produce'))
    void client.produce('q', 'x', { answerMsMax: 3_000 }).catch(note('patient'))
    void client.lease('q', { clientId: 'c', waitMs: 5_000 }).catch(note('lease'))
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

  it('carries the API key, and has the server give up first', async () => {
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

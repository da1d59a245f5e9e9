import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../test/manual-clock.ts'
import { createClient, type ExportedLetter } from '../index.ts'

type Given = Response | Error

function createTestClient(...given: Given[]) {
  const clock = new ManualClock()
  const requests: { url: string; init: RequestInit }[] = []
  const client = createClient({
    url: 'http://redrive.example',
    clock,
    retriesMax: 2,
    fetch: async (url, init = {}) => {
      requests.push({ url: String(url).slice('http://redrive.example'.length), init })
      const next = given.shift() ?? new Error('the test expected no further call')
      if (next instanceof Error) throw next
      return next
    },
  })
  return { client, clock, requests }
}

async function advanceUntil(clock: ManualClock, done: Promise<unknown>): Promise<void> {
  let isDone = false
  const end = (): void => {
    isDone = true
  }
  done.then(end, end)
  while (!isDone) await clock.advance(100)
}

/** An answer that arrives in chunks of `size` bytes, which can split a character. */
function respondInChunks(text: string, size: number): Response {
  const bytes = new TextEncoder().encode(text)
  let at = 0
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      if (at >= bytes.length) controller.close()
      else controller.enqueue(bytes.subarray(at, at + size))
      at += size
    },
  })
  return new Response(body)
}

const line = (value: object) => `${JSON.stringify(value)}\n`
const end = (more: object = {}) =>
  line({ end: { is_complete: true, letters: 1, examined_count: 1, next_cursor: null, error: null, ...more } })

async function collectIds(letters: AsyncIterable<ExportedLetter>): Promise<string[]> {
  const ids: string[] = []
  for await (const letter of letters) ids.push(letter.id)
  return ids
}

describe('an export', () => {
  it.each([1, 3, 1_000])('an export that arrives in chunks of %d bytes yields every letter', async (size) => {
    const { client, requests } = createTestClient(
      respondInChunks(line({ id: 'ä😀' }) + line({ id: 'b' }) + end(), size),
    )
    expect(await collectIds(client.exportLetters({ queue: ['q 1', 'q2'], status: 'DEAD' }))).toEqual([
      'ä😀',
      'b',
    ])
    expect(requests[0]?.url).toBe('/api/v1/letters/export?queue=q+1&queue=q2&status=DEAD')
  })

  it('an export that the server ended early continues at its cursor', async () => {
    const cut = {
      is_complete: false,
      next_cursor: 'c1',
      error: { code: 'SHUTTING_DOWN', message: 'stopping' },
    }
    const { client, clock, requests } = createTestClient(
      new Response(line({ id: 'a' }) + end(cut)),
      Object.assign(new Error(), { code: 'ECONNREFUSED' }),
      new Response(line({ id: 'b' }) + end()),
    )
    const ids = collectIds(client.exportLetters())
    await advanceUntil(clock, ids)
    expect(await ids).toEqual(['a', 'b'])
    expect(requests.map(({ url }) => url)).toEqual([
      '/api/v1/letters/export',
      '/api/v1/letters/export?cursor=c1',
      '/api/v1/letters/export?cursor=c1',
    ])
  })

  it('an export continues after the last letter after each lost connection', async () => {
    const { client, clock, requests } = createTestClient(
      new Response(`${line({ id: 'a', cursor: 'c1' })}${line({ id: 'b', cursor: 'c2' })}{"id":"c","cur`),
      Object.assign(new Error(), { code: 'ECONNREFUSED' }),
      new Response(line({ id: 'c', cursor: 'c3' })),
      new Response(line({ id: 'd', cursor: 'c4' }) + end({ letters: 1, examined_count: 5 })),
    )
    const ids: string[] = []
    const all = (async () => {
      const letters = client.exportLetters()
      for (;;) {
        const next = await letters.next()
        if (next.done) return next.value
        ids.push(next.value.id)
      }
    })()
    await advanceUntil(clock, all)
    expect(await all).toMatchObject({ is_complete: true, letters: 4, examined_count: 8 })
    expect(ids).toEqual(['a', 'b', 'c', 'd'])
    expect(requests.map(({ url }) => url.split('?')[1])).toEqual([
      undefined,
      'cursor=c2',
      'cursor=c2',
      'cursor=c3',
    ])
  })

  it('an export without cursors is not continued after a lost connection, but rejected', async () => {
    const { client } = createTestClient(new Response(line({ id: 'a' })))
    await expect(collectIds(client.exportLetters())).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
  })

  it('a refused export rejects with the reason and is not repeated', async () => {
    const error = {
      code: 'BAD_REQUEST',
      message: 'query.json is wrong',
      hint: 'Correct it.',
      request_id: 'r',
    }
    const { client, requests } = createTestClient(Response.json({ error }, { status: 400 }))
    await expect(collectIds(client.exportLetters({ json: '$' }))).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
    expect(requests).toHaveLength(1)
  })

  it('leaving the loop of an export ends the request', async () => {
    let isCancelled = false
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(line({ id: 'a' }))),
      cancel: () => {
        isCancelled = true
      },
    })
    const { client, requests } = createTestClient(new Response(body))
    for await (const { id } of client.exportLetters()) {
      expect(id).toBe('a')
      break
    }
    expect(requests[0]?.init.signal?.aborted || isCancelled).toBe(true)
  })
})

describe('watchCampaign', () => {
  const event = (id: string, campaign: object) =>
    `id: ${id}\nevent: campaign\ndata: ${JSON.stringify(campaign)}\n\n`

  it('watchCampaign yields every state until the campaign ends, and continues after a lost connection', async () => {
    const { client, clock, requests } = createTestClient(
      new Response(`retry: 2000\n\n${event('1', { state: 'running', is_ended: false })}: still here\n\n`),
      new Response(event('2', { state: 'done', is_ended: true })),
    )
    const states: string[] = []
    const watched = (async () => {
      for await (const { state } of client.watchCampaign('c 1')) states.push(state)
    })()
    await advanceUntil(clock, watched)
    await watched
    expect(states).toEqual(['running', 'done'])
    expect(requests.map(({ url }) => url)).toEqual(Array(2).fill('/api/v1/campaigns/c%201/events'))
    expect(requests[1]?.init.headers).toMatchObject({ 'Last-Event-ID': '1', Accept: 'text/event-stream' })
  })

  it('watching a campaign rejects after retriesMax refused connections', async () => {
    const refused = () => Object.assign(new Error(), { code: 'ECONNREFUSED' })
    const { client, clock } = createTestClient(refused(), refused(), refused())
    const watched = client.watchCampaign('c').next()
    watched.catch(() => undefined)
    await advanceUntil(clock, watched)
    await expect(watched).rejects.toMatchObject({ code: 'CONNECTION_REFUSED', isRetryable: true })
  })
})

describe('adjustCampaign', () => {
  it('adjustCampaign sends the changes with the reason, and is not repeated if the answer is lost', async () => {
    const { client, requests } = createTestClient(Response.json({ id: 'c 1' }), new TypeError('cut'))
    await client.adjustCampaign('c 1', { rate_per_second: 5 }, { reason: 'slower' })
    expect(requests[0]).toMatchObject({ url: '/api/v1/campaigns/c%201', init: { method: 'PATCH' } })
    expect(JSON.parse(String(requests[0]?.init.body))).toEqual({ rate_per_second: 5, reason: 'slower' })
    await expect(client.adjustCampaign('c', { ramp: '1m' })).rejects.toThrow()
    expect(requests).toHaveLength(2)
  })
})

describe('redriveLetter', () => {
  it('an edit sends text as text and bytes as base64', async () => {
    const { client, requests } = createTestClient(
      Response.json({ id: 'a', is_started: true, edit: 1 }),
      Response.json({ id: 'a', is_started: true, edit: 1 }),
    )
    const edit = {
      payload: new Uint8Array([255]),
      key: null,
      headers: [['h', 'v'], ['n', null], { name: 'b', base64: '/w==' }] as const,
    }
    await client.redriveLetter('a', { edit, reason: 'typo' })
    await client.redriveLetter('a', { edit: 1 })
    expect(JSON.parse(String(requests[1]?.init.body))).toEqual({ edit: 1 })
    expect(JSON.parse(String(requests[0]?.init.body))).toEqual({
      reason: 'typo',
      edit: {
        payload: { base64: '/w==' },
        key: null,
        headers: [{ name: 'h', text: 'v' }, { name: 'n' }, { name: 'b', base64: '/w==' }],
      },
    })
  })
})

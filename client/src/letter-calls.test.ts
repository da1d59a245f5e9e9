import { describe, expect, it } from 'vitest'
import { ManualClock } from '../test/manual-clock.ts'
import { createClient, type ExportedLetter } from './index.ts'

type Given = Response | Error

function aClient(...given: Given[]) {
  const clock = new ManualClock()
  const asked: { url: string; init: RequestInit }[] = []
  const client = createClient({
    url: 'http://redrive.example',
    clock,
    retriesMax: 2,
    fetch: async (url, init = {}) => {
      asked.push({ url: String(url).slice('http://redrive.example'.length), init })
      const next = given.shift() ?? new Error('nothing more was given')
      if (next instanceof Error) throw next
      return next
    },
  })
  return { client, clock, asked }
}

async function passUntil(clock: ManualClock, done: Promise<unknown>): Promise<void> {
  let isDone = false
  const end = (): void => {
    isDone = true
  }
  done.then(end, end)
  while (!isDone) await clock.advance(100)
}

/** Bytes as a network may cut them: anywhere, also within a character. */
function inPieces(text: string, size: number): Response {
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
  line({ end: { is_complete: true, letters: 1, looked: 1, next_cursor: null, error: null, ...more } })

async function idsOf(letters: AsyncIterable<ExportedLetter>): Promise<string[]> {
  const ids: string[] = []
  for await (const letter of letters) ids.push(letter.id)
  return ids
}

describe('an export', () => {
  it.each([1, 3, 1_000])('is read letter by letter, in pieces of %d bytes', async (size) => {
    const { client, asked } = aClient(inPieces(line({ id: 'ä😀' }) + line({ id: 'b' }) + end(), size))
    expect(await idsOf(client.exportLetters({ queue: ['q 1', 'q2'], status: 'DEAD' }))).toEqual(['ä😀', 'b'])
    expect(asked[0]?.url).toBe('/api/v1/letters/export?queue=q+1&queue=q2&status=DEAD')
  })

  it('goes on where the server stopped', async () => {
    const cut = {
      is_complete: false,
      next_cursor: 'c1',
      error: { code: 'SHUTTING_DOWN', message: 'stopping' },
    }
    const { client, clock, asked } = aClient(
      new Response(line({ id: 'a' }) + end(cut)),
      Object.assign(new Error(), { code: 'ECONNREFUSED' }),
      new Response(line({ id: 'b' }) + end()),
    )
    const ids = idsOf(client.exportLetters())
    await passUntil(clock, ids)
    expect(await ids).toEqual(['a', 'b'])
    expect(asked.map(({ url }) => url)).toEqual([
      '/api/v1/letters/export',
      '/api/v1/letters/export?cursor=c1',
      '/api/v1/letters/export?cursor=c1',
    ])
  })

  it('goes on after the last letter when it is cut, however often', async () => {
    const { client, clock, asked } = aClient(
      new Response(`${line({ id: 'a', cursor: 'c1' })}${line({ id: 'b', cursor: 'c2' })}{"id":"c","cur`),
      Object.assign(new Error(), { code: 'ECONNREFUSED' }),
      new Response(line({ id: 'c', cursor: 'c3' })),
      new Response(line({ id: 'd', cursor: 'c4' }) + end({ letters: 1, looked: 5 })),
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
    await passUntil(clock, all)
    expect(await all).toMatchObject({ is_complete: true, letters: 4, looked: 8 })
    expect(ids).toEqual(['a', 'b', 'c', 'd'])
    expect(asked.map(({ url }) => url.split('?')[1])).toEqual([
      undefined,
      'cursor=c2',
      'cursor=c2',
      'cursor=c3',
    ])
  })

  it('of letters that do not say where they stand is an error without its last line', async () => {
    const { client } = aClient(new Response(line({ id: 'a' })))
    await expect(idsOf(client.exportLetters())).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
  })

  it('that is refused says why, and is not repeated', async () => {
    const error = {
      code: 'BAD_REQUEST',
      message: 'query.json is wrong',
      hint: 'Correct it.',
      request_id: 'r',
    }
    const { client, asked } = aClient(Response.json({ error }, { status: 400 }))
    await expect(idsOf(client.exportLetters({ json: '$' }))).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect(asked).toHaveLength(1)
  })

  it('ends at the server when the loop is left', async () => {
    let isCancelled = false
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(line({ id: 'a' }))),
      cancel: () => {
        isCancelled = true
      },
    })
    const { client, asked } = aClient(new Response(body))
    for await (const { id } of client.exportLetters()) {
      expect(id).toBe('a')
      break
    }
    expect(asked[0]?.init.signal?.aborted || isCancelled).toBe(true)
  })
})

describe('a watched campaign', () => {
  const event = (id: string, campaign: object) =>
    `id: ${id}\nevent: campaign\ndata: ${JSON.stringify(campaign)}\n\n`

  it('is told state by state, over a cut connection, to its end', async () => {
    const { client, clock, asked } = aClient(
      new Response(`retry: 2000\n\n${event('1', { state: 'running', is_ended: false })}: still here\n\n`),
      new Response(event('2', { state: 'done', is_ended: true })),
    )
    const states: string[] = []
    const watched = (async () => {
      for await (const { state } of client.watchCampaign('c 1')) states.push(state)
    })()
    await passUntil(clock, watched)
    await watched
    expect(states).toEqual(['running', 'done'])
    expect(asked.map(({ url }) => url)).toEqual(Array(2).fill('/api/v1/campaigns/c%201/events'))
    expect(asked[1]?.init.headers).toMatchObject({ 'Last-Event-ID': '1', Accept: 'text/event-stream' })
  })

  it('fails when the server cannot be reached any more', async () => {
    const refused = () => Object.assign(new Error(), { code: 'ECONNREFUSED' })
    const { client, clock } = aClient(refused(), refused(), refused())
    const watched = client.watchCampaign('c').next()
    watched.catch(() => undefined)
    await passUntil(clock, watched)
    await expect(watched).rejects.toMatchObject({ code: 'CONNECTION_REFUSED', isRetryable: true })
  })
})

describe('a campaign that is adjusted', () => {
  it('is told what changes, and why; not twice when the answer is lost', async () => {
    const { client, asked } = aClient(Response.json({ id: 'c 1' }), new TypeError('cut'))
    await client.adjustCampaign('c 1', { rate_per_second: 5 }, { reason: 'slower' })
    expect(asked[0]).toMatchObject({ url: '/api/v1/campaigns/c%201', init: { method: 'PATCH' } })
    expect(JSON.parse(String(asked[0]?.init.body))).toEqual({ rate_per_second: 5, reason: 'slower' })
    await expect(client.adjustCampaign('c', { ramp: '1m' })).rejects.toThrow()
    expect(asked).toHaveLength(2)
  })
})

describe('an edit', () => {
  it('sends text as text and bytes as base64', async () => {
    const { client, asked } = aClient(
      Response.json({ id: 'a', is_started: true, edit: 1 }),
      Response.json({ id: 'a', is_started: true, edit: 1 }),
    )
    const edit = {
      payload: new Uint8Array([255]),
      key: null,
      headers: [
        ['h', 'v'],
        ['n', null],
      ] as const,
    }
    await client.redriveLetter('a', { edit, reason: 'typo' })
    await client.redriveLetter('a', { edit: 1 })
    expect(JSON.parse(String(asked[1]?.init.body))).toEqual({ edit: 1 })
    expect(JSON.parse(String(asked[0]?.init.body))).toEqual({
      reason: 'typo',
      edit: { payload_base64: '/w==', key: null, headers: [{ name: 'h', value: 'v' }, { name: 'n' }] },
    })
  })
})

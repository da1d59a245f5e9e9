import { once } from 'node:events'
import { get as httpGet, type IncomingMessage } from 'node:http'
import { expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { startFaultyProxy } from '../http/faulty-proxy.ts'
import { pollUntil } from '../http/poll-until.ts'
import { type Body, createEnvelope, describeLettersServers } from './servers.ts'

async function readExport(url: string): Promise<{ letters: Body[]; end: Body; headers: Headers }> {
  const response = await fetch(url)
  expect(response.status).toBe(200)
  const lines = (await response.text()).trimEnd().split('\n')
  const read = lines.map((line) => JSON.parse(line))
  return { letters: read.slice(0, -1), end: read.at(-1).end, headers: response.headers }
}

/** Reads the first bytes of an answer and disconnects. */
async function readStart(url: string, bytes: number): Promise<string> {
  const request = httpGet(url)
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  const parts: Buffer[] = []
  for await (const part of answer) {
    parts.push(part)
    if (Buffer.concat(parts).length >= bytes) break
  }
  return Buffer.concat(parts).subarray(0, bytes).toString()
}

describeLettersServers('an export', (api) => {
  it('an exported letter has the names of its campaigns', async () => {
    const { queue, dead } = await api.createQueues()
    const ids = await api.capture(dead, createEnvelope(queue), createEnvelope(queue))
    const campaign = { name: 'Named', reason: 'r', action: 'redrive', ids }
    expect((await api.post('/api/v1/campaigns', campaign)).status).toBe(200)
    const { letters } = await pollUntil(
      () => readExport(`${api.url}/api/v1/letters/export?queue=${dead}`),
      (seen) => seen.letters.every(({ redrives }) => redrives.length > 0),
    )
    expect(letters.map(({ redrives }) => redrives[0].campaign.name)).toEqual(['Named', 'Named'])
  })

  it('an export has every letter that matches, and reports that it is complete', async () => {
    const { queue, dead } = await api.createQueues()
    const ids = await api.capture(
      dead,
      createEnvelope(queue, { original_value: 'text', original_key: 'k', headers: { h: 'v' } }),
      createEnvelope(queue, { original_value: { base64: '/wA=' } }),
      createEnvelope(queue, { error_code: 'other' }),
    )
    const { letters, end, headers } = await readExport(
      `${api.url}/api/v1/letters/export?queue=${dead}&order=asc&error_code=TimeoutError`,
    )
    expect(headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
    expect(letters).toMatchObject([
      {
        id: ids[0],
        key: { text: 'k' },
        payload: { bytes: 4, is_truncated: false, text: 'text' },
        headers: [{ name: 'h', text: 'v' }],
        failures: [{ error_class: 'TimeoutError', stack: 'at call (a.js:1)' }],
        redrives: [],
      },
      { id: ids[1], payload: { bytes: 2, is_truncated: false, base64: '/wA=' } },
    ])
    expect(end).toEqual({ is_complete: true, letters: 2, examined_count: 2, next_cursor: null, error: null })
  })

  it('an export of many letters has each of them once', async () => {
    const { queue, dead } = await api.createQueues()
    for (let batch = 0; batch < 3; batch++) {
      await api.capture(dead, ...Array.from({ length: 1_000 }, () => createEnvelope(queue)))
    }
    const ids = new Set<string>()
    for await (const { id } of api.client.exportLetters({ queue: dead })) ids.add(id)
    expect(ids.size).toBe(3_000)
  })

  it.each(['dead_lettered_at', 'updated_at'])(
    'an export by %s that was cut off continues after its last complete line',
    async (by) => {
      const { queue, dead } = await api.createQueues()
      const ids = await api.capture(dead, ...Array.from({ length: 700 }, () => createEnvelope(queue)))
      const url = `${api.url}/api/v1/letters/export?queue=${dead}&order_by=${by}&order=asc`
      const seen: string[] = []
      let cursor: string | undefined
      // Each cut is within a line, and at another position.
      for (const bytes of [2_000, 90_000, 150_001]) {
        const lines = (await readStart(cursor === undefined ? url : `${url}&cursor=${cursor}`, bytes)).split(
          '\n',
        )
        const letters = lines.slice(0, -1).map((line) => JSON.parse(line))
        seen.push(...letters.map(({ id }) => id))
        cursor = letters.at(-1).cursor
      }
      const { letters, end } = await readExport(`${url}&cursor=${cursor}`)
      seen.push(...letters.map(({ id }) => id))
      expect(end.is_complete).toBe(true)
      expect(letters.length).toBeGreaterThan(0)
      expect(seen.toSorted()).toEqual(ids.toSorted())
    },
  )

  it('the client continues an export over broken connections', async () => {
    const { queue, dead } = await api.createQueues()
    const ids = await api.capture(dead, ...Array.from({ length: 300 }, () => createEnvelope(queue)))
    let cuts = 0
    const { url, paths } = await startFaultyProxy(api.url, () => (cuts++ < 3 ? 'cut-answer' : 'none'))
    const client = createClient({ url })
    const seen: string[] = []
    for await (const { id } of client.exportLetters({ queue: dead })) seen.push(id)
    expect(seen.toSorted()).toEqual(ids.toSorted())
    expect(paths).toHaveLength(4)
  })

  it('an export without letters has only the last line', async () => {
    const { dead } = await api.createQueues()
    const { letters, end } = await readExport(`${api.url}/api/v1/letters/export?queue=${dead}`)
    expect(letters).toEqual([])
    expect(end).toMatchObject({ is_complete: true, letters: 0 })
  })

  it('an export with an invalid query is refused', async () => {
    for (const query of ['json=x', 'status=X', 'cursor=abc', 'limit=5']) {
      expect((await api.get(`/api/v1/letters/export?${query}`)).status).toBe(400)
    }
  })
})

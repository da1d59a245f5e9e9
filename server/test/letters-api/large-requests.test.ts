import { expect, it } from 'vitest'
import { describeLettersServers } from './servers.ts'

const timeouts = { lease_timeout: '1m', expire_timeout: '24h' }
const atOnce = 20

describeLettersServers('large requests over HTTP', (api) => {
  const post = (path: string, body: string | object): Promise<Response> =>
    fetch(api.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })

  /** Answers health checks, one after the other, until the work is done. Returns their number. */
  const checkHealthDuring = async (work: Promise<unknown>): Promise<number> => {
    let isDone = false
    void work.finally(() => {
      isDone = true
    })
    let checks = 0
    while (!isDone) {
      expect((await fetch(`${api.url}/healthz`)).status).toBe(200)
      checks++
    }
    return checks
  }

  it('a large letter has the same content in every form', async () => {
    const { dead } = await api.createQueues()
    const values = Array.from({ length: 60_000 }, (_, index) => `{"n":${index},"t":"ü\\u0000😀"}`)
    const json = `[12345678901234567890,${values.join(',')}]`
    const [id] = await api.capture(dead, { original_value: json })
    const read = async (form: string) =>
      (await fetch(`${api.url}/api/v1/letters/${id}?payload_form=${form}`)).text()

    expect(JSON.parse(await read('text')).payload.text).toBe(json)
    expect(JSON.parse(await read('base64')).payload.base64).toBe(Buffer.from(json).toString('base64'))
    const shown = await read('json')
    expect(JSON.parse(shown).payload).toMatchObject({ json: JSON.parse(json), is_truncated: false })
    // A large payload is sent as it was stored, with all digits.
    expect(shown).toContain('12345678901234567890')
    const line = (await (await fetch(`${api.url}/api/v1/letters/export?queue=${dead}`)).text()).split('\n')[0]
    expect(JSON.parse(line ?? '').payload.text).toBe(json)
  })

  it('the messages of a dead-letter topic have their payloads as they were stored', async () => {
    const { dead } = await api.createQueues()
    const json = `[12345678901234567890,${'[],'.repeat(100_000)}[]]`
    const text = 'ü\u0001"'.repeat(100_000)
    const given = [json, text, '{"n":1}', 'plain']
    const ids: string[] = []
    for (const original_value of given) ids.push(...(await api.capture(dead, { original_value })))
    const answer = await fetch(`${api.url}/internal/v1/dlq?topic=${dead}`)
    const body = await answer.text()
    // A large payload is sent as it was stored, with all digits.
    expect(body).toContain('12345678901234567890')
    const page = JSON.parse(body)
    expect(page).toMatchObject({ nextCursor: null, hasNext: false })
    const byId = new Map<string, unknown>(
      page.messages.map((message: { id: string; original_value: object }) => [
        message.id,
        message.original_value,
      ]),
    )
    expect(ids.map((id) => byId.get(id))).toMatchObject([
      { json: JSON.parse(json), bytes: json.length, is_truncated: false },
      { text, is_truncated: false },
      { json: { n: 1 } },
      { text: 'plain' },
    ])
  })

  it('a large JSON body is captured exactly as it was written, with the digits of its numbers', async () => {
    const { dead } = await api.createQueues()
    const value = `[${'12345678901234567890, '.repeat(20_000)}1]`
    const answer = await post(
      '/api/v1/letters',
      `{"queue":"${dead}","letters":[{"original_value":${value}}]}`,
    )
    const { letters } = (await answer.json()) as { letters: { id: string; problems: string[] }[] }
    expect(letters[0]?.problems).toEqual([])
    const { body } = await api.get(`/api/v1/letters/${letters[0]?.id}`)
    expect(body.payload.text).toBe(value)
  })

  it('a large item is produced, leased, listed and imported with the same bytes', async () => {
    const queue_name = `large-${Math.random()}`
    await post('/v1/queues.create', { queue_name, requested_partitions: 1, ...timeouts })
    const bytes = Buffer.alloc(3_000_001, 'abcdefg').toString('base64')
    const request_timeout = '10s'
    expect(
      (await post('/v1/queue.produce', { queue_name, request_timeout, items: [{ bytes }] })).status,
    ).toBe(200)
    const leased = await post('/v1/queue.lease', {
      queue_name,
      client_id: 'w',
      batch_size: 1,
      request_timeout,
    })
    expect(await leased.json()).toMatchObject({ items: [{ bytes }] })
    const listed = await post('/v1/storage/items.list', { queue_name, limit: 10 })
    expect(await listed.json()).toMatchObject({ items: [{ payload: bytes }] })
    const items = [{ payload: bytes, source_id: 'one' }]
    const imported = await post('/v1/storage/items.import', { queue_name, items })
    expect(await imported.json()).toMatchObject({ items })
  })

  it('a payload of more than 16 MiB is refused, and a body without a large payload is limited to 1 MB', async () => {
    const { dead } = await api.createQueues()
    const over = 'x'.repeat(16 * 2 ** 20 + 1)
    const captured = await post('/api/v1/letters', { queue: dead, letters: [{ original_value: over }] })
    expect(captured.status).toBe(400)
    expect(await captured.text()).toContain('body.letters[0].original_value has 16777217 bytes')
    const discarded = await post('/api/v1/letters/discard', { ids: Array(500_000).fill(1), reason: 'x' })
    expect(discarded.status).toBe(413)
  })

  it('headers are limited per letter and per request', async () => {
    const { dead } = await api.createQueues()
    const long = { headers: { a: 'x'.repeat(2 ** 20) } }
    expect((await post('/api/v1/letters', { queue: dead, letters: [long] })).status).toBe(400)
    const headers = Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`h${index}`, 'v']))
    const letters = Array(1_000).fill({ headers })
    const many = await post('/api/v1/letters', { queue: dead, letters })
    expect(await many.text()).toContain('11000 headers')
  })

  it('twenty large captures at once are stored or refused with Retry-After, and health checks are answered', async () => {
    const { dead } = await api.createQueues()
    const value = `[${'{"a":[1,2]},'.repeat(100_000)}1]`
    const body = `{"queue":"${dead}","letters":[{"original_value":${value}}]}`
    const sent = Promise.all(Array.from({ length: atOnce }, () => post('/api/v1/letters', body)))
    const checks = await checkHealthDuring(sent)
    const answers = await sent
    for (const { status, headers } of answers) {
      expect([200, 503]).toContain(status)
      if (status === 503) expect(headers.get('retry-after')).not.toBeNull()
    }
    const stored = answers.filter(({ status }) => status === 200).length
    expect(stored).toBeGreaterThan(0)
    const { body: page } = await api.get(`/api/v1/letters?queue=${dead}&limit=100`)
    expect(page.letters).toHaveLength(stored)
    // Twenty parses on the server's thread would leave time for a few checks only.
    expect(checks).toBeGreaterThan(atOnce)
  })

  it('twenty reads of a large letter at once are all answered, and health checks between them', async () => {
    const { dead } = await api.createQueues()
    const value = `[${'[],'.repeat(700_000)}[]]`
    const [id] = await api.capture(dead, { original_value: value })
    const read = async (): Promise<number> => {
      const answer = await fetch(`${api.url}/api/v1/letters/${id}?payload_form=json`)
      return (await answer.text()).length
    }
    const reading = Promise.all(Array.from({ length: atOnce }, read))
    const checks = await checkHealthDuring(reading)
    for (const length of await reading) expect(length).toBeGreaterThan(value.length)
    expect(checks).toBeGreaterThan(atOnce)
  })
})

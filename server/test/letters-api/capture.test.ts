import { expect, it } from 'vitest'
import { type Body, createEnvelope, describeLettersServers, noonText } from './servers.ts'

describeLettersServers('capturing letters over HTTP', (api) => {
  it('a captured letter has all fields of its envelope', async () => {
    const { queue, dead } = await api.createQueues()
    const [id] = await api.capture(dead, {
      source_id: 'orders/7',
      original_topic: queue,
      original_partition: 3,
      original_offset: 7,
      original_key: 'customer-1',
      original_value: { order: 1 },
      headers: [
        ['trace', 'abc'],
        ['trace', { base64: '/w==' }],
        ['empty', null],
      ],
      error_details: { exception_class: 'java.io.IOException', message: 'disk: gone', stack_trace: 'at a.b' },
      retry_count: 5,
      worker_instance: 'w-1',
      consumer_group: 'billing',
      first_failure_at: '2026-01-02T03:04:05.000001Z',
      last_failure_at: '2026-01-02T03:05:05Z',
    })
    const { body } = await api.get(`/api/v1/letters/${id}?payload_form=text`)
    expect(body).toMatchObject({
      id,
      queue: dead,
      status: 'PENDING',
      source_id: 'orders/7',
      origin: { kind: 'kafka', name: queue, partition: 3, id: '7', consumer_group: 'billing' },
      retry_count: 0,
      requeue_count: 0,
      key: { text: 'customer-1' },
      payload: { text: '{"order":1}', bytes: 11 },
      headers: [{ name: 'trace', text: 'abc' }, { name: 'trace', base64: '/w==' }, { name: 'empty' }],
      failures: [
        {
          error_class: 'java.io.IOException',
          slug: 'disk',
          message: 'disk: gone',
          stack: 'at a.b',
          attempts: 5,
          worker: 'w-1',
          first_failed_at: '2026-01-02T03:04:05.000001Z',
          last_failed_at: '2026-01-02T03:05:05.000000Z',
        },
      ],
      redrives: [],
      edits: [],
      archived_at: null,
    })
  })

  it('repeated captures of a source id are one letter', async () => {
    const { queue, dead } = await api.createQueues()
    const letters = [
      createEnvelope(queue, { source_id: 'a' }),
      createEnvelope(queue, { source_id: 'b' }),
      createEnvelope(queue),
    ]
    const first = await api.post('/api/v1/letters', { queue: dead, letters })
    const again = await api.post('/api/v1/letters', { queue: dead, letters })
    expect(first.body.letters.map(({ is_new }: { is_new: boolean }) => is_new)).toEqual([true, true, true])
    expect(again.body.letters.map(({ is_new }: { is_new: boolean }) => is_new)).toEqual([false, false, true])
    expect(again.body.letters[0].id).toBe(first.body.letters[0].id)
    expect((await api.get(`/api/v1/letters/counts?queue=${dead}`)).body.total).toBe(4)
  })

  it('the history of an envelope is shown newest first, in whichever order it was sent', async () => {
    const { queue, dead } = await api.createQueues()
    const [id] = await api.capture(
      dead,
      createEnvelope(queue, {
        error_details: { message: 'third' },
        history: [
          { failed_at: '2026-01-01T00:00:00Z', message: 'first' },
          { failed_at: '2026-01-02T00:00:00Z', message: 'second' },
        ],
      }),
    )
    const { failures } = (await api.get(`/api/v1/letters/${id}`)).body
    expect(failures.map(({ message }: Body) => message)).toEqual(['third', 'second', 'first'])
  })

  it('unknown fields of an envelope are reported and kept as a header', async () => {
    const { dead } = await api.createQueues()
    const sent = { original_value: 'v', error_message: 'disk full', orignal_topic: 'orders' }
    const { body } = await api.post('/api/v1/letters', { queue: dead, letters: [sent] })
    expect(body.letters[0].problems).toEqual([
      'error_message is an unknown field',
      'orignal_topic is an unknown field; did you mean original_topic?',
    ])
    const letter = (await api.get(`/api/v1/letters/${body.letters[0].id}?payload_form=text`)).body
    expect(letter).toMatchObject({
      payload: { text: 'v' },
      failures: [{ error_code: 'unknown', message: '' }],
    })
    expect(letter.headers.map(({ name }: Body) => name)).toEqual(['redrive-envelope'])
    expect(JSON.parse(letter.headers[0].text)).toEqual({
      error_message: 'disk full',
      orignal_topic: 'orders',
    })
  })

  it('an invalid envelope is captured completely, with its problems', async () => {
    const { dead } = await api.createQueues()
    const sent = [
      'just a text',
      7,
      { original_value: { base64: '***' }, retry_count: 'many' },
      { 'a\0b': '\0' },
    ]
    const { status, body } = await api.post('/api/v1/letters', { queue: dead, letters: sent })
    expect(status).toBe(200)
    expect(body.letters.map(({ problems }: { problems: string[] }) => problems.length)).toEqual([1, 1, 2, 1])
    const { body: detail } = await api.get(`/api/v1/letters/${body.letters[2].id}?payload_form=json`)
    expect(detail.payload.json).toEqual(sent[2])
    expect(detail.failures[0]).toMatchObject({ error_code: 'undecodable' })
  })

  it('large numbers and long source ids stay distinct, with every digit', async () => {
    const { dead } = await api.createQueues()
    const value = '{"id":12345678901234567890, "a":1,"a":2}'
    const record = (offset: string) =>
      `{"original_topic":"t","original_partition":0,"original_offset":${offset},"original_value":${value}}`
    const sourced = (end: string) => JSON.stringify({ source_id: `${'s'.repeat(1_000)}${end}` })
    const letters = [record('9007199254740993'), record('9007199254740992'), sourced('a'), sourced('b')]
    const { body } = await api.post(
      '/api/v1/letters',
      `{"queue":"${dead}","letters":[${letters.join(' ,')}]}`,
    )
    expect(body.letters.map(({ is_new }: { is_new: boolean }) => is_new)).toEqual([true, true, true, true])
    expect(body.letters.map(({ problems }: { problems: string[] }) => problems.length)).toEqual([0, 0, 1, 1])
    const { body: detail } = await api.get(`/api/v1/letters/${body.letters[0].id}?payload_form=text`)
    expect(detail).toMatchObject({ origin: { id: '9007199254740993' }, payload: { text: value } })
  })

  it('a text that cannot be stored refuses no letter of a batch', async () => {
    const { dead } = await api.createQueues()
    const odd = [
      '{"original_value":"\\ud800"}',
      '{"error_details":{"message":"m\\ud800"}}',
      '{"headers":{"\\udc00":""}}',
    ]
    const text = `{"queue":"${dead}","letters":[${odd.join()},{"original_value":"ok"},"\\ud800"]}`
    const { status, body } = await api.post('/api/v1/letters', text)
    expect(status).toBe(200)
    expect(body.letters.map(({ problems }: { problems: string[] }) => problems.length)).toEqual([
      1, 1, 1, 0, 1,
    ])
    const { body: detail } = await api.get(`/api/v1/letters/${body.letters[0].id}?payload_form=text`)
    expect(detail.payload.text).toBe(odd[0])
    expect((await api.post('/api/v1/letters', `{"queue":"\\ud800","letters":[{}]}`)).status).toBe(400)
  })

  it('a refused capture stores no letter', async () => {
    const { queue, dead } = await api.createQueues()
    const many = Array.from({ length: 1_001 }, () => createEnvelope(queue))
    const refusals = [
      [{ queue: dead, letters: many }, 400, '1001 letters; at most 1000'],
      [{ queue: dead, letters: [] }, 400, 'body.letters'],
      [{ queue: dead }, 400, 'body.letters'],
      [{ letters: [createEnvelope(queue)] }, 400, 'body.queue'],
      [{ queue: dead, letters: [createEnvelope(queue)], colour: 'red' }, 400, 'body.colour'],
      [{ queue: 'no-such-queue', letters: [createEnvelope(queue)] }, 404, 'no-such-queue'],
    ] as const
    for (const [body, status, word] of refusals) {
      const answer = await api.post('/api/v1/letters', body)
      expect(answer.status).toBe(status)
      expect(answer.body.error.message).toContain(word)
    }
    expect((await api.get(`/api/v1/letters/counts?queue=${dead}`)).body.total).toBe(0)
  })

  it('a payload of 16 MiB is kept byte for byte, and its list page stays small', async () => {
    const { queue, dead } = await api.createQueues()
    const bytes = Buffer.alloc(16 * 1_024 * 1_024, 'ab\xff', 'latin1')
    const [id] = await api.capture(
      dead,
      createEnvelope(queue, { original_value: { base64: bytes.toString('base64') } }),
    )
    const { body } = await api.get(`/api/v1/letters/${id}?payload_form=base64`)
    expect(body.payload).toMatchObject({ bytes: bytes.length, is_truncated: false })
    expect(Buffer.from(body.payload.base64, 'base64').equals(bytes)).toBe(true)
    const page = await api.get(`/api/v1/letters?queue=${dead}`)
    expect(page.body.letters[0].payload).toMatchObject({
      bytes: bytes.length,
      is_truncated: true,
      base64: expect.any(String),
    })
    expect(JSON.stringify(page.body).length).toBeLessThan(10_000)
  })

  it('a payload that is nested too deep for JSON is shown as text', async () => {
    const { queue, dead } = await api.createQueues()
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    const [id] = await api.capture(dead, createEnvelope(queue, { original_value: deep }))
    expect((await api.get(`/api/v1/letters/${id}?payload_form=json`)).body.payload).toEqual({
      bytes: 200_000,
      is_truncated: false,
      text: deep,
    })
    const json = encodeURIComponent('$[0][0]=1')
    expect((await api.get(`/api/v1/letters?queue=${dead}&json=${json}`)).status).toBe(200)
  })

  it('an envelope that is nested too deep is captured as its text, and other letters are not affected', async () => {
    const { queue, dead } = await api.createQueues()
    const deep = `{"source_id":"deep","original_value":${'['.repeat(20_000)}${']'.repeat(20_000)}}`
    const body = `{"queue":"${dead}","letters":[${JSON.stringify(createEnvelope(queue))},${deep}]}`
    const send = async () => {
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(`${api.url}/api/v1/letters`, { method: 'POST', headers, body })
      expect(response.status).toBe(200)
      return ((await response.json()) as Body).letters as Body[]
    }
    const letters = await send()
    expect(letters[1]).toMatchObject({ is_new: true, problems: [expect.stringContaining('nested deeper')] })
    const { body: shown } = await api.get(`/api/v1/letters/${letters[1]?.id}`)
    expect(shown.payload.text).toBe(deep)
    expect(shown.failures[0]).toMatchObject({ error_code: 'undecodable' })
    expect((await send())[1]).toMatchObject({ id: letters[1]?.id, is_new: false })
  })

  it('capturing into a queue with a dead queue is refused, because redrives could no longer go there', async () => {
    const { queue, dead } = await api.createQueues()
    const refused = await api.post('/api/v1/letters', { queue, letters: [createEnvelope(queue)] })
    expect(refused).toMatchObject({
      status: 400,
      body: { error: { code: 'DEAD_QUEUE_INVALID', message: expect.stringContaining(dead) } },
    })
    const [id] = await api.capture(dead, createEnvelope(queue))
    const sent = await api.post('/api/v1/letters/redrive', { ids: [id] })
    expect(sent.body.letters).toMatchObject([{ is_started: true }])
  })

  it('capturing into a queue that was created again with a dead queue is refused', async () => {
    const { queue, dead } = await api.createQueues()
    const other = `${dead}-other`
    await api.post('/api/v1/queues', { name: other })
    await api.capture(other, createEnvelope(queue))
    await api.client.deleteQueue(other, { force: true })
    await api.post('/api/v1/queues', { name: other, policy: { dead_queue: dead } })
    const refused = await api.post('/api/v1/letters', { queue: other, letters: [createEnvelope(queue)] })
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'DEAD_QUEUE_INVALID' } } })
  })

  it('a letter without a time of death died at the time of the server', async () => {
    const { queue, dead } = await api.createQueues()
    await api.setClock({ now: noonText })
    const [id] = await api.capture(dead, createEnvelope(queue))
    expect((await api.get(`/api/v1/letters/${id}`)).body).toMatchObject({
      dead_lettered_at: noonText,
      updated_at: noonText,
    })
    await api.setClock({ resume: true })
  })
})

import { afterAll, describe, expect, it } from 'vitest'
import { routes } from '../routes.ts'
import { captureBodyReader } from '../v1/letters/capture-body.ts'
import { queueItemsBodyReader } from '../v1/queues/queue-items-body.ts'
import { createBodyThread } from './body-thread.ts'
import { bodyReaders } from './readers.ts'

const thread = createBodyThread()
afterAll(() => thread.close())
const facts = { now: 1_790_000_000_000_000 }

describe('the body thread', () => {
  it('the body thread has the reader of every route that has one', () => {
    const named = routes.flatMap(({ bodyReader }) => bodyReader ?? [])
    expect(named.length).toBeGreaterThan(2)
    for (const reader of named) expect(bodyReaders.get(reader.name)).toBe(reader)
  })

  it('the body thread reads a body as the reader does', async () => {
    const letters = [
      {
        source_id: 'a',
        original_value: { n: 12_345 },
        headers: { h: 'x' },
        error_details: { message: 'no' },
      },
      { source_id: 'b', original_value: 'text', original_key: { base64: 'AAEC' } },
    ]
    const body = Buffer.from(JSON.stringify({ queue: 'dead', letters }))
    const expected = captureBodyReader.read(body, facts)
    expect(await thread.read(captureBodyReader, body, facts)).toEqual(expected)
  })

  it('the body thread reports the same faults of a body as the reader does', async () => {
    const body = Buffer.from('{"items":[{"payload":{"text":"a"},"priorty":3}]}')
    const faults = [{ field: 'body.items[0].priorty', message: expect.stringContaining('did you mean') }]
    expect(() => queueItemsBodyReader.read(body, facts)).toThrow(expect.objectContaining({ faults }))
    await expect(thread.read(queueItemsBodyReader, body, facts)).rejects.toMatchObject({ faults })
  })

  it('the body thread refuses a body with too many JSON values', async () => {
    const body = Buffer.from(`{"queue":"dead","letters":[{"original_value":[${'[],'.repeat(1_200_001)}[]]}]}`)
    await expect(thread.read(captureBodyReader, body, facts)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  it('the server handles other events while the thread reads a body with many values', async () => {
    const value = Array.from({ length: 300_000 }, (_, index) => index)
    const body = Buffer.from(JSON.stringify({ queue: 'dead', letters: [{ original_value: value }] }))
    let turns = 0
    let isDone = false
    const countTurns = (): void => {
      turns++
      if (!isDone) setImmediate(countTurns)
    }
    setImmediate(countTurns)
    const { letters } = await thread.read(captureBodyReader, body, facts)
    isDone = true
    expect(letters[0]?.letter.payload.length).toBe(JSON.stringify(value).length)
    // Parsing on the server's thread would end within one or two turns.
    expect(turns).toBeGreaterThan(10)
  })

  it('the memory of a large body moves to the thread, and is not copied', async () => {
    const body = Buffer.alloc(300_000, 'x')
    await expect(thread.read(captureBodyReader, body, facts)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect(body.length).toBe(0)
  })

  it('the body thread finds whether a payload is shown as JSON', async () => {
    expect(await thread.isJson(Buffer.from('{"a":[1]}'))).toBe(true)
    expect(await thread.isJson(Buffer.from('{"a":[1}'))).toBe(false)
    expect(await thread.isJson(Buffer.from(`${'['.repeat(600)}${']'.repeat(600)}`))).toBe(false)
  })

  it('a body that needs too much memory ends the thread, not the server, and the next body is read', async () => {
    await using small = createBodyThread({ heapMbMax: 24 })
    const names = Array.from({ length: 300_000 }, (_, index) => `"${index}":[]`)
    const large = Buffer.from(`{"queue":"dead","letters":[{"original_value":{${names.join(',')}}}]}`)
    const reading = small.read(captureBodyReader, large, facts)
    const waiting = small.isJson(Buffer.from('1'))
    await Promise.all([
      expect(reading).rejects.toMatchObject({ code: 'BODY_TOO_LARGE' }),
      expect(waiting).rejects.toMatchObject({ code: 'SERVER_OVERLOADED' }),
    ])
    expect(await small.isJson(Buffer.from('1'))).toBe(true)
  })

  it('a body that is being read when the server stops is refused, and does not wait', async () => {
    const stopped = createBodyThread()
    const reading = stopped.read(captureBodyReader, Buffer.from('{}'), facts)
    await Promise.all([expect(reading).rejects.toMatchObject({ code: 'SERVER_OVERLOADED' }), stopped.close()])
  })
})

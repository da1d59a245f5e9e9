import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { collectBody, takeCollectedBody } from './collect-body.ts'

async function readAll(stream: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0
  for await (const chunk of stream) bytes += chunk.length
  return bytes
}

describe('the collection of a large body', () => {
  it('a large body is collected in memory of its own, and its stream has only its length', async () => {
    const request = {} as IncomingMessage
    const payload = new PassThrough()
    const collected = collectBody(request, payload, 200_000)
    payload.write(Buffer.alloc(150_000, 'a'))
    payload.end(Buffer.alloc(50_000, 'b'))
    expect(await readAll(collected)).toBe(0)
    expect(collected).toMatchObject({ receivedEncodedLength: 200_000 })
    const body = takeCollectedBody(request)
    expect(body?.equals(Buffer.concat([Buffer.alloc(150_000, 'a'), Buffer.alloc(50_000, 'b')]))).toBe(true)
    expect(body?.buffer.byteLength).toBe(200_000)
    expect(takeCollectedBody(request)).toBeUndefined()
  })

  it('a body that ends early or fails is not collected', async () => {
    const request = {} as IncomingMessage
    const payload = new PassThrough()
    const collected = collectBody(request, payload, 200_000)
    payload.end(Buffer.alloc(10))
    await readAll(collected)
    expect(takeCollectedBody(request)).toBeUndefined()

    const broken = new PassThrough()
    const failing = readAll(collectBody(request, broken, 200_000))
    broken.destroy(new Error('the client is gone'))
    await expect(failing).rejects.toThrow('the client is gone')
  })
})

import { Type } from 'typebox'
import { describe, expect, it } from 'vitest'
import { abortOnDisconnect } from '../../src/api/http/connections/client-disconnect.ts'
import { route } from '../../src/api/http/route.ts'
import { v1 } from '../../src/api/v1/dialect.ts'
import { connectRaw } from '../http/raw-connection.ts'
import { startTestApi } from '../http/test-api.ts'

/** Starts a long poll. Returns the signal of its handler, and a function that makes the handler answer. */
async function startPoll() {
  let resolveStarted: (poll: { disconnected: AbortSignal; answer: () => void }) => void = () => {}
  const started = new Promise<{ disconnected: AbortSignal; answer: () => void }>((resolve) => {
    resolveStarted = resolve
  })
  const poll = route({
    method: 'POST',
    path: '/poll',
    operationId: 'poll',
    permission: 'public',
    summary: 'Waits.',
    tag: 'server',
    dialect: v1,
    slowMs: Number.POSITIVE_INFINITY,
    schema: { body: Type.Object({}), response: { 200: Type.Object({}) } },
    handler: (_request, reply) =>
      new Promise((resolve) =>
        resolveStarted({ disconnected: abortOnDisconnect(reply).signal, answer: () => resolve({}) }),
      ),
  })
  const { port } = await startTestApi({ routes: [poll] })
  const raw = await connectRaw(port)
  raw.write('POST /poll HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}')
  return { raw, ...(await started) }
}

describe('a waiting handler', () => {
  it('the signal of a waiting handler aborts when its client disconnects', async () => {
    const { raw, disconnected } = await startPoll()
    expect(disconnected.aborted).toBe(false)
    const aborted = new Promise((resolve) => disconnected.addEventListener('abort', resolve))
    raw.socket.destroy()
    await aborted
  })

  it('the signal of a handler does not abort when the client disconnects after the answer', async () => {
    const { raw, disconnected, answer } = await startPoll()
    answer()
    await raw.readTo('{}')
    raw.socket.destroy()
    await raw.readToEnd()
    expect(disconnected.aborted).toBe(false)
  })
})

import { Type } from 'typebox'
import { describe, expect, it } from 'vitest'
import { abortWhenClientGone } from '../../src/api/http/client-gone.ts'
import { route } from '../../src/api/http/route.ts'
import { v1 } from '../../src/api/v1/dialect.ts'
import { connectRaw } from '../http/raw-connection.ts'
import { startTestApi } from '../http/test-api.ts'

/** A long poll that tells the test its signal and answers when the test says so. */
async function startPoll() {
  let begin: (poll: { gone: AbortSignal; answer: () => void }) => void = () => {}
  const begun = new Promise<{ gone: AbortSignal; answer: () => void }>((resolve) => {
    begin = resolve
  })
  const poll = route({
    method: 'POST',
    path: '/poll',
    permission: 'public',
    summary: 'Waits.',
    tag: 'server',
    dialect: v1,
    slowMs: Number.POSITIVE_INFINITY,
    schema: { body: Type.Object({}), response: { 200: Type.Object({}) } },
    handler: (_request, reply) =>
      new Promise((resolve) => begin({ gone: abortWhenClientGone(reply).signal, answer: () => resolve({}) })),
  })
  const { port } = await startTestApi({ routes: [poll] })
  const raw = await connectRaw(port)
  raw.write('POST /poll HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}')
  return { raw, ...(await begun) }
}

describe('a handler that waits', () => {
  it('is told when its client goes away', async () => {
    const { raw, gone } = await startPoll()
    expect(gone.aborted).toBe(false)
    const told = new Promise((resolve) => gone.addEventListener('abort', resolve))
    raw.socket.destroy()
    await told
  })

  it('is told nothing when its answer arrived', async () => {
    const { raw, gone, answer } = await startPoll()
    answer()
    await raw.readTo('{}')
    raw.socket.destroy()
    await raw.readToEnd()
    expect(gone.aborted).toBe(false)
  })
})

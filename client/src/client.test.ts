import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createClient, RedriveError } from './index.ts'

let server: Server | undefined
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

async function createTestClient(listener: RequestListener, answerMsMax?: number) {
  const listening = createServer(listener)
  server = listening
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
  const { port } = listening.address() as AddressInfo
  return createClient({ url: `http://127.0.0.1:${port}/`, ...(answerMsMax !== undefined && { answerMsMax }) })
}

describe('the client', () => {
  it('getInfo requests /api/v1/info', async () => {
    const client = await createTestClient((request, answer) =>
      answer.end(JSON.stringify({ path: request.url })),
    )
    expect(await client.getInfo()).toEqual({ path: '/api/v1/info' })
  })

  it('a rejected call has code, status, message, hint and request id of the answer', async () => {
    const error = { code: 'NOT_FOUND', message: 'there is no x', hint: 'Look.', request_id: 'r1' }
    const client = await createTestClient((_, answer) => answer.writeHead(404).end(JSON.stringify({ error })))
    const failed = await client.getInfo().catch((reason: unknown) => reason)
    expect(failed).toBeInstanceOf(RedriveError)
    expect(failed).toMatchObject({
      code: 'NOT_FOUND',
      status: 404,
      message: 'there is no x',
      hint: 'Look.',
      requestId: 'r1',
    })
  })

  it('an answer that is not from Redrive is reported as UNKNOWN with its status', async () => {
    const client = await createTestClient((_, answer) => answer.writeHead(502).end('<h1>Bad Gateway</h1>'))
    await expect(client.getInfo()).rejects.toMatchObject({ code: 'UNKNOWN', status: 502 })
  })

  it('getHealth resolves for a failing server, and rejects if the server refuses to answer', async () => {
    const failing = { status: 'fail', version: '1', checks: {} }
    const client = await createTestClient((_, answer) => answer.writeHead(503).end(JSON.stringify(failing)))
    expect(await client.getHealth()).toEqual(failing)
    const error = { code: 'SHUTTING_DOWN', message: 'm', hint: 'h', request_id: 'r' }
    server?.removeAllListeners('request')
    server?.on('request', (_, answer) => answer.writeHead(503).end(JSON.stringify({ error })))
    await expect(client.getHealth()).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
  })

  it('a call rejects if the answer takes longer than answerMsMax, or if its signal aborts', async () => {
    const client = await createTestClient(() => {}, 20)
    await expect(client.getInfo()).rejects.toMatchObject({ code: 'ANSWER_TIMEOUT', status: 0 })
    await expect(client.getInfo({ signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: 'AbortError',
    })
  })
})

import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createClient, RedriveError } from './index.ts'

let server: Server | undefined
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

async function clientOf(listener: RequestListener, answerMsMax?: number) {
  const listening = createServer(listener)
  server = listening
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
  const { port } = listening.address() as AddressInfo
  return createClient({ url: `http://127.0.0.1:${port}/`, ...(answerMsMax !== undefined && { answerMsMax }) })
}

describe('the client', () => {
  it('asks the path of each call', async () => {
    const client = await clientOf((request, answer) => answer.end(JSON.stringify({ path: request.url })))
    expect(await client.info()).toEqual({ path: '/api/v1/info' })
  })

  it('tells what the server said when it says no', async () => {
    const error = { code: 'NOT_FOUND', message: 'there is no x', hint: 'Look.', request_id: 'r1' }
    const client = await clientOf((_, answer) => answer.writeHead(404).end(JSON.stringify({ error })))
    const failed = await client.info().catch((reason: unknown) => reason)
    expect(failed).toBeInstanceOf(RedriveError)
    expect(failed).toMatchObject({
      code: 'NOT_FOUND',
      status: 404,
      message: 'there is no x',
      hint: 'Look.',
      requestId: 'r1',
    })
  })

  it('says that it cannot tell when the answer is not from Redrive', async () => {
    const client = await clientOf((_, answer) => answer.writeHead(502).end('<h1>Bad Gateway</h1>'))
    await expect(client.info()).rejects.toMatchObject({ code: 'UNKNOWN', status: 502 })
  })

  it('takes the health of a sick server for an answer, and a refusal for none', async () => {
    const sick = { status: 'fail', version: '1', checks: {} }
    const client = await clientOf((_, answer) => answer.writeHead(503).end(JSON.stringify(sick)))
    expect(await client.health()).toEqual(sick)
    const error = { code: 'SHUTTING_DOWN', message: 'm', hint: 'h', request_id: 'r' }
    server?.removeAllListeners('request')
    server?.on('request', (_, answer) => answer.writeHead(503).end(JSON.stringify({ error })))
    await expect(client.health()).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
  })

  it('gives up when the answer takes too long, or when it is told to', async () => {
    const client = await clientOf(() => {}, 20)
    await expect(client.info()).rejects.toMatchObject({ code: 'ANSWER_TIMEOUT', status: 0 })
    await expect(client.info({ signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' })
  })
})

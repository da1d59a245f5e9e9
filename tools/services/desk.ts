/**
 * The test run's keeper, reachable from the processes that run test files.
 *
 * Loopback HTTP, with a secret in the path so that nothing else on the machine can make it start
 * programs. `GET <desk>/find/kafka` answers once Kafka is up; `GET <desk>/records` at once.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import {
  type Found,
  Misconfigured,
  type ServiceFacts,
  type ServiceName,
  type ServiceRecord,
  serviceNames,
} from './found.ts'
import type { Keeper, ServiceSource } from './keeper.ts'

/** Tells the processes of a test run where its desk is. */
export const deskVariable = 'REDRIVE_TEST_DESK'

export async function openDesk(keeper: Keeper): Promise<{ url: string; close(): Promise<void> }> {
  const secret = randomBytes(16).toString('hex')
  const answers = new Map<string, () => Promise<unknown>>([[`/${secret}/records`, () => keeper.records()]])
  for (const name of serviceNames) answers.set(`/${secret}/find/${name}`, () => keeper.find(name))

  const server = createServer(async (request, response) => {
    const answer = answers.get(request.url ?? '')
    if (answer === undefined) return response.writeHead(404).end()
    try {
      response.end(JSON.stringify(await answer()))
    } catch (error) {
      response.writeHead(500).end(error instanceof Error ? error.message : String(error))
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // The desk waits for tests, never tests for the desk: it must not keep the run from ending.
  server.unref()
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('a TCP server has no port')
  return {
    url: `http://127.0.0.1:${address.port}/${secret}`,
    async close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

export function sourceAtDesk(url: string): ServiceSource {
  return {
    find: async <N extends ServiceName>(service: N) =>
      (await ask(`${url}/find/${service}`)) as Found<ServiceFacts[N]>,
    records: async () => (await ask(`${url}/records`)) as readonly ServiceRecord[],
  }
}

// Not fetch(), which gives up after five minutes without an answer: a first start may download longer.
async function ask(url: string): Promise<unknown> {
  const request = get(url, { agent: false })
  const [response] = (await once(request, 'response')) as [import('node:http').IncomingMessage]
  let body = ''
  for await (const chunk of response.setEncoding('utf8')) body += chunk
  if (response.statusCode !== 200) throw new Misconfigured(body)
  return JSON.parse(body)
}

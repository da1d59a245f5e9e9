/**
 * Gives the processes that run test files access to the service registry of the test run.
 *
 * It is an HTTP server on loopback, with a secret in the path so that no other program on the machine can use
 * it to start programs. `GET <url>/find/kafka` answers after Kafka has started, `GET <url>/records`
 * immediately.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import {
  type Found,
  type ServiceFacts,
  ServiceMisconfigured,
  type ServiceName,
  type ServiceRecord,
  serviceNames,
} from './service.ts'
import type { ServiceRegistry, ServiceSource } from './service-registry.ts'

/** The environment variable with the URL of the registry server, for the processes of a test run. */
export const registryUrlVariable = 'REDRIVE_TEST_REGISTRY'

export async function startRegistryServer(
  registry: ServiceRegistry,
): Promise<{ url: string; close(): Promise<void> }> {
  const secret = randomBytes(16).toString('hex')
  const answers = new Map<string, () => Promise<unknown>>([[`/${secret}/records`, () => registry.records()]])
  for (const name of serviceNames) answers.set(`/${secret}/find/${name}`, () => registry.find(name))

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
  // The server must not keep the test run from ending.
  server.unref()
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the TCP server has no port')
  return {
    url: `http://127.0.0.1:${address.port}/${secret}`,
    async close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

export function connectToRegistry(url: string): ServiceSource {
  return {
    find: async <N extends ServiceName>(service: N) =>
      (await ask(`${url}/find/${service}`)) as Found<ServiceFacts[N]>,
    records: async () => (await ask(`${url}/records`)) as readonly ServiceRecord[],
  }
}

// Not fetch(), which fails after five minutes without an answer: the first start may download for longer.
async function ask(url: string): Promise<unknown> {
  const request = get(url, { agent: false })
  const [response] = (await once(request, 'response')) as [import('node:http').IncomingMessage]
  let body = ''
  for await (const chunk of response.setEncoding('utf8')) body += chunk
  if (response.statusCode !== 200) throw new ServiceMisconfigured(body)
  return JSON.parse(body)
}

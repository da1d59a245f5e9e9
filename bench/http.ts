/**
 * Measures POST /v1/queue.produce with one item per request against a complete server, and the same requests
 * against an empty Fastify handler. This process serves both; the client is another process.
 */
import { fastify } from 'fastify'
import { readSettings } from '../server/src/config/settings/read-settings.ts'
import { settingsTable } from '../server/src/config/settings/settings.ts'
import { createLogger } from '../server/src/ops/log/log.ts'
import { startServer } from '../server/src/server.ts'
import type { StoreTarget } from '../server/src/storage/open-storage.ts'
import { runHttpClient } from './http-figures.ts'
import type { Measured } from './report.ts'

export const httpOperation = 'produce over HTTP'
export const httpSubjects = { empty: 'empty Fastify handler' } as const

const connections = 64
const queueName = 'bench'

export async function benchHttp({
  seconds,
  targets,
}: Readonly<{ seconds: number; targets: Readonly<Record<string, StoreTarget>> }>): Promise<Measured[]> {
  const measured = [await measureHttp(httpSubjects.empty, await startEmpty(), seconds)]
  for (const [subject, target] of Object.entries(targets)) {
    measured.push(await measureHttp(subject, await startRedrive(target), seconds))
  }
  return measured
}

type Serving = Readonly<{ url: string; stop(): Promise<void> }>

async function startEmpty(): Promise<Serving> {
  const app = fastify()
  app.post('/v1/queue.produce', async () => ({}))
  return { url: await app.listen({ host: '127.0.0.1', port: 0 }), stop: () => app.close() }
}

async function startRedrive(store: StoreTarget): Promise<Serving> {
  const { settings } = readSettings(settingsTable, [])
  const log = createLogger({ level: 'warn', isPretty: false })
  const server = await startServer({ settings: { ...settings, port: 0 }, store, log })
  const response = await fetch(`${server.url}/v1/queues.create`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      queue_name: queueName,
      lease_timeout: '1m',
      expire_timeout: '24h',
      requested_partitions: 1,
    }),
  })
  if (!response.ok) throw new Error(`queues.create: ${await response.text()}`)
  return { url: server.url, stop: () => server.stop(5_000) }
}

async function measureHttp(subject: string, serving: Serving, seconds: number): Promise<Measured> {
  try {
    const load = { url: serving.url, queue: queueName, operation: 'produce', connections, seconds } as const
    const { cpuUs: _, ...figures } = await runHttpClient(load)
    return { subject, operation: httpOperation, batch: 1, callers: connections, ...figures }
  } finally {
    await serving.stop()
  }
}

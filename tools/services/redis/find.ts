import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import { unpackProgram } from '../install/debian-package.ts'
import { findProgram } from '../install/find-program.ts'
import { findFreePort } from '../process/free-port.ts'
import { supervise } from '../process/supervise.ts'
import { type RunningService, type ServiceFacts, ServiceMisconfigured } from '../service.ts'

const readyMsMax = 20_000

export async function findRedis(
  configured: string | undefined,
): Promise<RunningService<ServiceFacts['redis']>> {
  if (configured !== undefined) {
    const version = await readRedisVersion(configured).catch((error: unknown) => {
      throw new ServiceMisconfigured(`REDRIVE_TEST_REDIS does not answer: ${String(error)}`)
    })
    return { facts: { url: configured }, origin: 'configured', version, stop: async () => {} }
  }
  return startRedis(await findRedisProgram())
}

async function findRedisProgram(): Promise<string> {
  const installed = await findProgram('redis-server', 'valkey-server')
  return installed ?? unpackProgram({ debianPackage: 'redis-server', path: 'usr/bin/redis-server' })
}

/** A server of one test file, which can be stopped and started again. It keeps no data. */
export type RedisServer = Readonly<{
  url: string
  start(): Promise<void>
  stop(): Promise<void>
  end(): Promise<void>
}>

export async function startPrivateServer(): Promise<RedisServer> {
  const { facts, start, interrupt, stop } = await startRedis(await findRedisProgram())
  return { ...facts, start, stop: interrupt, end: stop }
}

type StartedRedis = RunningService<ServiceFacts['redis']> &
  Readonly<{ start(): Promise<void>; interrupt(): Promise<void> }>

async function startRedis(command: string): Promise<StartedRedis> {
  const supervised = await supervise('redis')
  try {
    const port = await findFreePort()
    const password = randomBytes(12).toString('hex')
    const url = `redis://default:${password}@127.0.0.1:${port}`
    const settings = {
      bind: '127.0.0.1',
      port: String(port),
      requirepass: password,
      dir: supervised.folder,
      save: '',
      appendonly: 'no',
      daemonize: 'no',
    }
    const process = {
      command,
      args: Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
      env: {},
      logFile: join(supervised.folder, 'server.log'),
      stopSignal: 'SIGTERM',
    } as const
    const start = () => supervised.start(process, async () => void (await readRedisVersion(url)), readyMsMax)
    await start()
    return {
      facts: { url },
      origin: 'started',
      version: await readRedisVersion(url),
      stop: supervised.end,
      start,
      interrupt: () => supervised.stop('SIGTERM'),
    }
  } catch (error) {
    await supervised.end()
    throw error
  }
}

async function readRedisVersion(url: string): Promise<string> {
  const client = createClient({ url, socket: { reconnectStrategy: false, connectTimeout: 5_000 } })
  // connect() reports the error too; without a listener the event would end the process.
  client.on('error', () => {})
  await client.connect()
  try {
    const info = await client.info('server')
    return /^(?:valkey|redis)_version:(\S+)/m.exec(info)?.[1] ?? 'unknown'
  } finally {
    client.destroy()
  }
}

/**
 * Reads heartbeats from Redis with SCAN and MGET, in steps, so that Redis is never blocked for long.
 *
 * A lost connection fails the calls at once, and the next read connects again. A read that did not reach the
 * end of SCAN is no observation: workers whose keys were not read would look silent.
 */
import { createClient } from '@redis/client'
import type { Instant } from '../../../core/time/instant.ts'
import type { Heartbeat } from '../../../core/watching/worker.ts'
import { decodeHeartbeat, redisKeyPrefix } from './decode-heartbeat.ts'

export type RedisOptions = Readonly<{
  /** `redis://` or `rediss://` (TLS), with user, port and database. */
  url: string
  readPassword?: () => Promise<string>
  /** Certificates of the authorities that are trusted, in PEM; default: those of the system. */
  readCa?: () => Promise<string>
}>

export type RedisHeartbeats = Readonly<{
  heartbeats: readonly Heartbeat[]
  /** Keys that are no heartbeats. */
  unreadableKeys: readonly string[]
}>

export interface RedisReader {
  /** Rejects if Redis cannot be read completely. */
  read(now: () => Instant): Promise<RedisHeartbeats>
  ping(): Promise<void>
  close(): Promise<void>
}

const scanCount = 1_000
/** With `scanCount`, a Redis with a million keys. */
const scanStepsMax = 1_000
const keysPerRead = 500
const unreadableShownMax = 5
const timeoutMs = 3_000

type ClientOptions = Awaited<ReturnType<typeof toClientOptions>>
const newClient = (options: ClientOptions) => createClient(options)
type RedisClient = ReturnType<typeof newClient>

export function createRedisReader(options: RedisOptions, keysMax: number): RedisReader {
  let client: Promise<RedisClient> | undefined
  const connect = async (): Promise<RedisClient> => {
    const created = newClient(await toClientOptions(options))
    // Without a listener, a lost connection would end the process. Each call reports the state.
    created.on('error', () => undefined)
    try {
      await within(created.connect(), 'connect')
      return created
    } catch (error) {
      destroy(created)
      throw error
    }
  }
  const use = async <T>(run: (client: RedisClient) => Promise<T>): Promise<T> => {
    client ??= connect()
    try {
      return await run(await client)
    } catch (error) {
      const failed = client
      client = undefined
      // The next call connects again: the password or the address may have changed.
      void failed?.then(destroy).catch(() => undefined)
      throw error
    }
  }
  return {
    read: (now) => use((connected) => readAll(connected, now, keysMax)),
    ping: () => use(async (connected) => void (await within(connected.ping(), 'ping'))),
    close: async () => {
      const closing = client
      client = undefined
      await closing?.then(destroy).catch(() => undefined)
    },
  }
}

/** A client whose connection failed is closed already. */
function destroy(client: RedisClient): void {
  if (client.isOpen) client.destroy()
}

async function toClientOptions({ url, readPassword, readCa }: RedisOptions) {
  const password = await readPassword?.()
  const ca = await readCa?.()
  return {
    url,
    ...(password !== undefined && { password }),
    disableOfflineQueue: true,
    name: 'redrive',
    socket: {
      connectTimeout: timeoutMs,
      // The next pass connects again.
      reconnectStrategy: false as const,
      ...(url.startsWith('rediss:') && { tls: true as const, ...(ca !== undefined && { ca }) }),
    },
  }
}

async function readAll(client: RedisClient, now: () => Instant, keysMax: number): Promise<RedisHeartbeats> {
  const keys = await scan(client, keysMax)
  const heartbeats: Heartbeat[] = []
  const unreadableKeys: string[] = []
  for (let at = 0; at < keys.length; at += keysPerRead) {
    const part = keys.slice(at, at + keysPerRead)
    const values = await within(client.mGet(part), 'MGET')
    const receivedAt = now()
    for (const [position, value] of values.entries()) {
      // Null: the key has ended since it was found.
      if (value === null) continue
      const key = part[position] ?? ''
      const heartbeat = decodeHeartbeat(key, value, receivedAt)
      if (heartbeat !== undefined) heartbeats.push(heartbeat)
      else if (unreadableKeys.length < unreadableShownMax) unreadableKeys.push(key.slice(0, 200))
    }
  }
  return { heartbeats, unreadableKeys }
}

async function scan(client: RedisClient, keysMax: number): Promise<string[]> {
  const keys = new Set<string>()
  let cursor = '0'
  for (let step = 0; step < scanStepsMax; step++) {
    const found = await within(client.scan(cursor, { MATCH: `${redisKeyPrefix}*`, COUNT: scanCount }), 'SCAN')
    for (const key of found.keys) keys.add(key)
    if (keys.size > keysMax) throw new Error(`Redis has more than ${keysMax} keys worker:*`)
    cursor = String(found.cursor)
    if (cursor === '0') return [...keys]
  }
  throw new Error('Redis has too many other keys: give the heartbeats a database of their own')
}

async function within<T>(call: Promise<T>, name: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error(`Redis did not answer ${name} within ${timeoutMs} ms`)),
      timeoutMs,
    )
  })
  return Promise.race([call, timeout]).finally(() => clearTimeout(timer))
}

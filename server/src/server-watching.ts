/** The watch over workers and lag of a server, from its settings. */
import { parsePemReference } from './config/secrets/secret-reference.ts'
import { toExpectedWorkers, toLagThresholds, toWorkerRules } from './config/watching-settings.ts'
import { usPerMs } from './core/time/instant.ts'
import type { Kafka } from './drivers/kafka/kafka.ts'
import { createLoop, type Loop } from './engine/loop.ts'
import { createWatching } from './ops/watching/create-watching.ts'
import { createRedisObserver, noRedis, type RedisObserver } from './ops/watching/heartbeats/redis-observer.ts'
import { createRedisReader } from './ops/watching/heartbeats/redis-reader.ts'
import type { Watching } from './ops/watching/watching.ts'
import type { ServerClock } from './server-clock.ts'
import { listLags, listLosingTopics } from './server-kafka.ts'
import type { ServerOptions } from './server-options.ts'
import type { StoreParts } from './server-store.ts'

export type WatchingParts = Readonly<{ watching: Watching; watchingLoop: Loop }>

export function createServerWatching(
  options: ServerOptions,
  { connection, engine, onEngineEvent }: StoreParts,
  kafka: Kafka,
  clock: ServerClock,
  owner: string,
): WatchingParts {
  const { settings, log } = options
  const watching = createWatching({
    storage: connection.storage,
    engine,
    clock,
    rules: toWorkerRules(settings),
    expected: toExpectedWorkers(settings),
    thresholds: toLagThresholds(settings),
    listLags: () => listLags(kafka),
    listLosingTopics: () => listLosingTopics(kafka),
    redis: settings.read_only ? noRedis : createRedis(options, engine, clock, owner),
    workersMax: settings['workers.count_max'],
    isReadOnly: settings.read_only,
    log,
  })
  onEngineEvent(watching.count)
  const watchingLoop = createLoop(settings['workers.check_interval'], watching.pass, (error) =>
    log.warn({ err: error }, 'workers could not be checked; will retry'),
  )
  return { watching, watchingLoop }
}

function createRedis(
  { settings, log, readSecret = async (given) => given }: ServerOptions,
  engine: StoreParts['engine'],
  clock: ServerClock,
  owner: string,
): RedisObserver {
  const url = settings['redis.url']
  if (url === undefined) return noRedis
  const password = settings['redis.password']
  const ca = settings['redis.tls_ca']
  const reader = createRedisReader(
    {
      url,
      ...(password !== undefined && { readPassword: async () => (await readSecret(password)).reveal() }),
      ...(ca !== undefined && {
        readCa: async () => (await readSecret(parsePemReference(ca.reveal()))).reveal(),
      }),
    },
    settings['workers.count_max'],
  )
  const lockUs = 4 * settings['workers.check_interval'] * usPerMs
  return createRedisObserver({ reader, engine, clock, owner, lockUs, log })
}

/**
 * The real services that tests and benchmarks run against. Environment variables name running services; all
 * others are started. See docs/testing.md.
 *
 * In a test run, all test files share the services, which start when a test file first needs them. Any other
 * process has its own services, which stop when it ends or calls `stopServices`.
 */

import { type KafkaOptions, type KafkaServer, startKafka } from './kafka/server.ts'
import { createDatabaseOn, type Database } from './postgres/database.ts'
import { type PostgresPair, startPostgresPair } from './postgres/pair.ts'
import { type PostgresOptions, type PostgresServer, startPostgres } from './postgres/server.ts'
import { type RedisServer, startPrivateServer } from './redis/find.ts'
import { connectToRegistry, registryUrlVariable } from './registry-server.ts'
import type { Found, ServiceFacts } from './service.ts'
import { createServiceRegistry, none, type ServiceRegistry, type ServiceSource } from './service-registry.ts'

export { chromiumLaunchArgs } from './chromium/launch-args.ts'
export type { Database } from './postgres/database.ts'
export type { Found, ServiceFacts, ServiceName } from './service.ts'
export type PrivatePostgres = PostgresServer
export type PrivatePostgresPair = PostgresPair
export type PrivateKafka = KafkaServer
export type PrivateRedis = RedisServer

let ownRegistry: ServiceRegistry | undefined
const privateServers = new Set<Readonly<{ end(): Promise<void> }>>()

/** The shared server. Use `createDatabase` for your own tables. */
export async function getPostgres(): Promise<Found<ServiceFacts['postgres']>> {
  return getServiceSource().find('postgres')
}

/** Creates an empty database on the shared server. Throws if there is no server. */
export async function createDatabase(): Promise<Database> {
  const server = await getPostgres()
  if (!server.isFound) throw new Error(`PostgreSQL is not available: ${server.reason}`)
  return createDatabaseOn(server.url)
}

/**
 * Starts a private server, which the caller may stop and kill. A configured server is never used; `none`
 * forbids private servers too.
 */
export async function startPrivatePostgres(options: PostgresOptions = {}): Promise<Found<PrivatePostgres>> {
  if (process.env.REDRIVE_TEST_POSTGRES === none) {
    return { isFound: false, reason: `REDRIVE_TEST_POSTGRES is "${none}"` }
  }
  try {
    const server = await startPostgres(options)
    privateServers.add(server)
    return { isFound: true, ...server }
  } catch (error) {
    return { isFound: false, reason: error instanceof Error ? error.message : String(error) }
  }
}

/** Starts a primary and a synchronous standby. `none` forbids them too. */
export async function startPrivatePostgresPair(): Promise<Found<PrivatePostgresPair>> {
  if (process.env.REDRIVE_TEST_POSTGRES === none) {
    return { isFound: false, reason: `REDRIVE_TEST_POSTGRES is "${none}"` }
  }
  try {
    const pair = await startPostgresPair()
    privateServers.add(pair)
    return { isFound: true, ...pair }
  } catch (error) {
    return { isFound: false, reason: error instanceof Error ? error.message : String(error) }
  }
}

/** Starts a private broker, which the caller may stop and start again. `none` forbids private brokers too. */
export async function startPrivateKafka(options: KafkaOptions = {}): Promise<Found<PrivateKafka>> {
  if (process.env.REDRIVE_TEST_KAFKA === none) {
    return { isFound: false, reason: `REDRIVE_TEST_KAFKA is "${none}"` }
  }
  try {
    const server = await startKafka(options)
    privateServers.add(server)
    return { isFound: true, ...server }
  } catch (error) {
    return { isFound: false, reason: error instanceof Error ? error.message : String(error) }
  }
}

/** Starts a private Redis, which the caller may stop and start again. `none` forbids it too. */
export async function startPrivateRedis(): Promise<Found<PrivateRedis>> {
  if (process.env.REDRIVE_TEST_REDIS === none) {
    return { isFound: false, reason: `REDRIVE_TEST_REDIS is "${none}"` }
  }
  try {
    const server = await startPrivateServer()
    privateServers.add(server)
    return { isFound: true, ...server }
  } catch (error) {
    return { isFound: false, reason: error instanceof Error ? error.message : String(error) }
  }
}

export async function getRedis(): Promise<Found<ServiceFacts['redis']>> {
  return getServiceSource().find('redis')
}

export async function getKafka(): Promise<Found<ServiceFacts['kafka']>> {
  return getServiceSource().find('kafka')
}

/** A program that the caller launches with `chromiumLaunchArgs`. */
export async function getChromium(): Promise<Found<ServiceFacts['chromium']>> {
  return getServiceSource().find('chromium')
}

/** Stops the services that this process started. Shared services of a test run keep running until its end. */
export async function stopServices(): Promise<void> {
  const servers = [...privateServers]
  privateServers.clear()
  await Promise.all([ownRegistry?.stopAll(), ...servers.map((server) => server.end())])
}

export function getServiceSource(): ServiceSource {
  const registryUrl = process.env[registryUrlVariable]
  if (registryUrl !== undefined) return connectToRegistry(registryUrl)
  ownRegistry ??= createServiceRegistry(process.env)
  return ownRegistry
}

/**
 * The real services that tests and benchmarks run against: found through their variables, or else
 * brought up. docs/testing.md tells how.
 *
 * In a test run, all test files share what one of them asked for first. In any other process, the
 * services are its own, and end with it or with `stopAll`.
 */
import { deskVariable, sourceAtDesk } from './desk.ts'
import type { Found, ServiceFacts } from './found.ts'
import { createKeeper, type Keeper, type ServiceSource } from './keeper.ts'
import { createDatabaseOn, type Database } from './postgres/database.ts'
import { type PostgresOptions, type PostgresServer, startPostgres } from './postgres/server.ts'

export { chromiumLaunchArgs } from './chromium/launch-args.ts'
export type { Found, ServiceFacts, ServiceName } from './found.ts'
export type { Database } from './postgres/database.ts'
export type PrivatePostgres = PostgresServer

let ownKeeper: Keeper | undefined
const privateServers = new Set<PostgresServer>()

/** The shared server. For tables of your own, `createDatabase`. */
export async function postgres(): Promise<Found<ServiceFacts['postgres']>> {
  return serviceSource().find('postgres')
}

/** A fresh database on the shared server. Throws where there is none. */
export async function createDatabase(): Promise<Database> {
  const server = await postgres()
  if (!server.isFound) throw new Error(`no PostgreSQL: ${server.reason}`)
  return createDatabaseOn(server.url)
}

/** A server of your own, always started from its programs, so that you may stop and kill it. */
export async function privatePostgres(options: PostgresOptions = {}): Promise<Found<PrivatePostgres>> {
  try {
    const server = await startPostgres(options)
    privateServers.add(server)
    return { isFound: true, ...server }
  } catch (error) {
    return { isFound: false, reason: error instanceof Error ? error.message : String(error) }
  }
}

export async function redis(): Promise<Found<ServiceFacts['redis']>> {
  return serviceSource().find('redis')
}

export async function kafka(): Promise<Found<ServiceFacts['kafka']>> {
  return serviceSource().find('kafka')
}

/** A program for you to launch, with `chromiumLaunchArgs`. */
export async function chromium(): Promise<Found<ServiceFacts['chromium']>> {
  return serviceSource().find('chromium')
}

/** Ends what this process started. In a test run the shared services go on: the run ends them. */
export async function stopAll(): Promise<void> {
  const servers = [...privateServers]
  privateServers.clear()
  await Promise.all([ownKeeper?.stopAll(), ...servers.map((server) => server.end())])
}

export function serviceSource(): ServiceSource {
  const desk = process.env[deskVariable]
  if (desk !== undefined) return sourceAtDesk(desk)
  ownKeeper ??= createKeeper(process.env)
  return ownKeeper
}

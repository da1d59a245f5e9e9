/** Short ways for tests of what only PostgreSQL has. */
import type { Client, QueryResultRow } from 'pg'
import { createDatabase } from '../../tools/services/index.ts'
import { toInstant } from '../src/core/time/instant.ts'
import type { Command, ResultOf, Storage } from '../src/storage/contract/storage.ts'
import type { StoreOptions } from '../src/storage/open-storage.ts'
import { createPgClient } from '../src/storage/postgres/connection/tls-connection.ts'
import { openPostgres } from '../src/storage/postgres/postgres-storage.ts'

export interface TestDatabase extends AsyncDisposable {
  readonly url: string
  open(options?: StoreOptions): Promise<Storage>
  /** A connection of somebody else. */
  connect(): Promise<Client>
  rows<R extends QueryResultRow>(text: string, values?: unknown[]): Promise<R[]>
}

/** Tests write commands with times of their own, which the clock of the database must not bound. */
const wallClock = { now: () => toInstant(new Date()) }

export async function testDatabase(): Promise<TestDatabase> {
  const database = await createDatabase()
  const { url } = database
  const storages: Storage[] = []
  const clients: Client[] = []
  const connect = async (): Promise<Client> => {
    const client = createPgClient(url)
    // Dropping the database ends sessions that a failed test left open.
    client.on('error', () => {})
    await client.connect()
    clients.push(client)
    return client
  }
  let own: Client | undefined
  return {
    url,
    connect,
    open: async (options = {}) => {
      const storage = await openPostgres({ kind: 'postgres', url }, { clock: wallClock, ...options })
      storages.push(storage)
      return storage
    },
    rows: async (text, values = []) => {
      own ??= await connect()
      return (await own.query(text, values)).rows
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.allSettled(storages.map((storage) => storage.close()))
      await Promise.allSettled(clients.map((client) => client.end()))
      await database.drop()
    },
  }
}

export async function run<const C extends Command>(storage: Storage, command: C): Promise<ResultOf<C>> {
  const [result] = await storage.write([command] as const)
  return result as ResultOf<C>
}

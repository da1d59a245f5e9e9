import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createPgClient } from '../../../server/src/storage/postgres/connection/tls-connection.ts'
import { chownTree } from '../process/chown-tree.ts'
import { createCluster, launchPostgres, type PostgresServer, preparePostgres } from './server.ts'

/** A primary and a standby. The primary acknowledges a commit when the standby has it on disk. */
export interface PostgresPair extends AsyncDisposable {
  readonly primary: PostgresServer
  readonly standby: PostgresServer
  /** Makes the standby a primary, which waits for no standby. */
  promote(): Promise<void>
  /** Stops both and removes their data. Can be called twice. */
  end(): Promise<void>
}

const pollMs = 30

/**
 * The npm package has no pg_basebackup. The standby starts from a copy of the data folder that was made
 * before the first start of the primary, and receives all write-ahead log from then on.
 */
export async function startPostgresPair(): Promise<PostgresPair> {
  const preparedPrimary = await preparePostgres({}, createCluster)
  const { password } = preparedPrimary
  const prepared = [preparedPrimary]
  const end = async (): Promise<void> => {
    await Promise.all(prepared.map(({ supervised }) => supervised.end()))
  }
  try {
    const preparedStandby = await preparePostgres(
      { password, files: { 'standby.signal': '' } },
      async ({ folder, user }) => {
        const data = join(folder, 'data')
        await cp(join(preparedPrimary.supervised.folder, 'data'), data, { recursive: true })
        await rm(join(data, 'postmaster.pid'), { force: true })
        if (user !== undefined) await chownTree(data, user)
      },
    )
    prepared.push(preparedStandby)
    const primary = await launchPostgres(preparedPrimary, {
      synchronous_standby_names: '*',
      wal_keep_size: '1GB',
    })
    const { hostname, port, username } = new URL(primary.url)
    const standby = await launchPostgres(preparedStandby, {
      primary_conninfo: `host=${hostname} port=${port} user=${username} password=${password}`,
    })
    await waitUntil(primary.url, `select count(*) = 1 from pg_stat_replication where sync_state = 'sync'`)
    const promote = async (): Promise<void> => waitUntil(standby.url, 'select pg_promote(true, 60)')
    return { primary, standby, promote, end, [Symbol.asyncDispose]: end }
  } catch (error) {
    await end()
    throw error
  }
}

/** Repeats the query until its only value is true. */
async function waitUntil(url: string, query: string): Promise<void> {
  const client = createPgClient(url)
  client.on('error', () => {})
  await client.connect()
  try {
    for (;;) {
      const { rows } = await client.query<unknown[]>({ text: query, rowMode: 'array' })
      if (rows[0]?.[0] === true) return
      await new Promise((resolve) => setTimeout(resolve, pollMs))
    }
  } finally {
    await client.end()
  }
}

/** Changes the database directly, as a disk error, another program or a newer version would. */
import { DatabaseSync } from 'node:sqlite'
import type { StoreTarget } from '../../../src/storage/open-storage.ts'
import { createPgClient } from '../../../src/storage/postgres/connection/tls-connection.ts'

/** `schema`: the prefix of table names. */
export async function executeSql(target: StoreTarget, sql: (schema: string) => string): Promise<void> {
  if (target.kind === 'memory') throw new Error('a store in memory has no database file')
  if (target.kind === 'sqlite') {
    const database = new DatabaseSync(target.path)
    try {
      database.exec(sql(''))
    } finally {
      database.close()
    }
    return
  }
  const client = createPgClient(target.url)
  await client.connect()
  try {
    await client.query(sql('redrive.'))
  } finally {
    await client.end()
  }
}

/** Reaches behind a store's back, as a disk error, another program or a newer version would. */
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import type { StoreTarget } from '../../../src/storage/open-storage.ts'

/** `schema`: what comes before the name of a table. */
export async function executeSql(target: StoreTarget, sql: (schema: string) => string): Promise<void> {
  if (target.kind === 'memory') throw new Error('nobody can reach a store in memory')
  if (target.kind === 'sqlite') {
    const database = new DatabaseSync(target.path)
    try {
      database.exec(sql(''))
    } finally {
      database.close()
    }
    return
  }
  const client = new Client({ connectionString: target.url })
  await client.connect()
  try {
    await client.query(sql('redrive.'))
  } finally {
    await client.end()
  }
}

import { createPgClient } from '../server/src/storage/postgres/connection/tls-connection.ts'

/**
 * Runs the statements one after the other, each in its own transaction, because some (such as vacuum) must
 * not run in a larger one. Returns the rows of the last statement.
 */
export async function runSql(url: string, statements: readonly string[]): Promise<Record<string, unknown>[]> {
  const client = createPgClient(url)
  await client.connect()
  try {
    let rows: Record<string, unknown>[] = []
    for (const statement of statements) rows = (await client.query(statement)).rows
    return rows
  } finally {
    await client.end()
  }
}

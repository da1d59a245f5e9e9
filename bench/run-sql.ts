import { Client } from 'pg'

/** One after the other, each by itself: some, like vacuum, refuse to be part of a transaction. Gives the last one's rows. */
export async function runSql(url: string, statements: readonly string[]): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    let rows: Record<string, unknown>[] = []
    for (const statement of statements) rows = (await client.query(statement)).rows
    return rows
  } finally {
    await client.end()
  }
}

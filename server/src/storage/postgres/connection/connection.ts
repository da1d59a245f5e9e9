/** Statements, and a connection of the pool that sends them. */
import type { Buffer } from 'node:buffer'
import type pg from 'pg'
import { CopyQuery } from './copy-query.ts'
import { isConnectionLost, OutcomeUnknownError } from './errors.ts'
import { PreparedQuery, RawRowsQuery } from './prepared-query.ts'
import type { StuckConnections } from './stuck-connections.ts'

export type Row = Record<string, unknown>

export type Statement = Readonly<{
  /** A named statement is parsed and planned once per connection. */
  name?: string
  text: string
  /** The statement has no time limit. */
  isLong?: true
  /** Rows come as arrays of the texts that PostgreSQL sends, in the order of the columns. */
  hasRawRows?: true
}>

const preparedMax = 200
const preparedNames = new Map<string, string>()

/**
 * Names an assembled statement, so that it is planned once per connection. Only the first 200 different texts
 * get a name; each further text is planned whenever it is sent.
 */
export function prepareStatement(text: string): Statement {
  const known = preparedNames.get(text)
  if (known !== undefined) return { name: known, text }
  if (preparedNames.size >= preparedMax) return { text }
  const name = `assembled-${preparedNames.size + 1}`
  preparedNames.set(text, name)
  return { name, text }
}

export interface Connection {
  query(statement: Statement, values?: readonly unknown[]): Promise<Row[]>
  /** Runs a COPY statement. `messages`: the rows, encoded by items/copy-rows.ts. */
  copy(text: string, messages: readonly Buffer[]): Promise<void>
}

export const statementTimeoutMs = 60_000
/** Longer than the database lets a statement run. stuck-connections.ts finds lost answers earlier. */
const answerTimeoutMs = statementTimeoutMs + 10_000
const longAnswerTimeoutMs = 24 * 3_600_000

export class PooledConnection implements Connection {
  readonly #client: pg.PoolClient
  readonly #stuck: StuckConnections

  constructor(client: pg.PoolClient, stuck: StuckConnections) {
    this.#client = client
    this.#stuck = stuck
  }

  query(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    const timeoutMs = statement.isLong === true ? longAnswerTimeoutMs : answerTimeoutMs
    return new Promise((resolve, reject) => {
      this.#stuck.noteSent(this.#client)
      const done = (error: Error | undefined, rows: Row[]) => {
        this.#stuck.noteAnswered(this.#client)
        if (error) reject(error)
        else resolve(rows)
      }
      const Query = statement.hasRawRows === true ? RawRowsQuery : PreparedQuery
      this.#client.query(new Query(statement, values, timeoutMs, done))
    })
  }

  copy(text: string, messages: readonly Buffer[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#stuck.noteSent(this.#client)
      const done = (error: Error | undefined) => {
        this.#stuck.noteAnswered(this.#client)
        if (error) reject(error)
        else resolve()
      }
      this.#client.query(new CopyQuery(text, messages, answerTimeoutMs, done))
    })
  }
}

/** Commits the work, or rolls all of it back. */
export async function runInTransaction<T>(
  connection: Connection,
  begin: string,
  work: () => Promise<T>,
): Promise<T> {
  await connection.query({ text: begin })
  let result: T
  try {
    result = await work()
  } catch (error) {
    if (!isConnectionLost(error)) await connection.query({ text: 'rollback' })
    throw error
  }
  try {
    await connection.query({ text: 'commit' })
  } catch (error) {
    throw isConnectionLost(error) ? new OutcomeUnknownError(error) : error
  }
  return result
}

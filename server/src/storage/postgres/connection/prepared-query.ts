/**
 * A statement as `pg` sends and follows it, answered by a callback.
 *
 * The promise and the timer that `pg` makes for each query link it to the next one, so that all the answers of a busy
 * connection are kept until the next full collection of garbage: what a lease had read was copied to the old
 * part of the heap before it could go, which cost more than reading it. So there is no such promise, and what was
 * told is forgotten.
 */
import pg from 'pg'
import type { Row, Statement } from './connection.ts'

type Done = (error: Error | undefined, rows: Row[]) => void
/** What `pg` calls, and its types do not tell. */
type Preparing = Readonly<{ prepare(connection: pg.Connection): void }>
type DataRow = Readonly<{ fields: readonly (string | null)[] }>

export class PreparedQuery extends pg.Query {
  /** Where `pg` looks for them. */
  readonly query_timeout: number
  readonly name: string | undefined

  constructor({ name, text }: Statement, values: readonly unknown[], timeoutMs: number, done: Done) {
    let tell = done
    // As text: an object would be copied, property by property, each time.
    super(text, values as unknown[], (error, result) => {
      const told = tell
      tell = nothing
      // Several statements in one have several results, and whoever sends them wants none.
      told(error, result?.rows?.splice(0) ?? [])
    })
    this.name = name
    this.query_timeout = timeoutMs
  }
}

/**
 * One whose rows come as lists of values as PostgreSQL writes them, in the order of the columns. What the columns are
 * is not asked for: whoever sends it knows.
 */
export class RawRowsQuery extends PreparedQuery {
  readonly #rows: DataRow['fields'][]

  constructor(statement: Statement, values: readonly unknown[], timeoutMs: number, done: Done) {
    const rows: DataRow['fields'][] = []
    super(statement, values, timeoutMs, (error) => done(error, rows.splice(0) as unknown as Row[]))
    this.#rows = rows
  }

  prepare(connection: pg.Connection): void {
    const undescribed = Object.create(connection, { describe: { value: nothing } }) as pg.Connection
    ;(pg.Query.prototype as unknown as Preparing).prepare.call(this, undescribed)
  }

  handleDataRow({ fields }: DataRow): void {
    this.#rows.push(fields)
  }
}

function nothing(): void {}

/**
 * Queries that report their result to a callback.
 *
 * `pg` creates a promise and a timer for each query. They link it to the next query, so the results of a busy
 * connection stay in memory until the next full garbage collection: the rows of a lease were copied to the
 * old generation of the heap, which cost more than reading them. With a callback there is no promise, and the
 * result is dropped after the call.
 */
import pg from 'pg'
import type { Row, Statement } from './connection.ts'

type Done = (error: Error | undefined, rows: Row[]) => void
/** A method of `pg.Query` that its types do not have. */
type Preparable = Readonly<{ prepare(connection: pg.Connection): void }>
type DataRow = Readonly<{ fields: readonly (string | null)[] }>

export class PreparedQuery extends pg.Query {
  /** `pg` reads these two properties. */
  readonly query_timeout: number
  readonly name: string | undefined

  constructor({ name, text }: Statement, values: readonly unknown[], timeoutMs: number, done: Done) {
    let report = done
    // The text as a string: `pg` would copy an object, property by property, each time.
    super(text, values as unknown[], (error, result) => {
      const reportOnce = report
      report = doNothing
      // A text with several statements has several results; none of them is used.
      reportOnce(error, result?.rows?.splice(0) ?? [])
    })
    this.name = name
    this.query_timeout = timeoutMs
  }
}

/**
 * A query whose rows are arrays of the texts that PostgreSQL sends, in the order of the columns. The
 * description of the columns is not requested, because the caller knows them.
 */
export class RawRowsQuery extends PreparedQuery {
  readonly #rows: DataRow['fields'][]

  constructor(statement: Statement, values: readonly unknown[], timeoutMs: number, done: Done) {
    const rows: DataRow['fields'][] = []
    super(statement, values, timeoutMs, (error) => done(error, rows.splice(0) as unknown as Row[]))
    this.#rows = rows
  }

  prepare(connection: pg.Connection): void {
    const undescribed = Object.create(connection, { describe: { value: doNothing } }) as pg.Connection
    ;(pg.Query.prototype as unknown as Preparable).prepare.call(this, undescribed)
  }

  handleDataRow({ fields }: DataRow): void {
    this.#rows.push(fields)
  }
}

function doNothing(): void {}

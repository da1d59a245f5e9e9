/**
 * COPY into a table, as a query of `pg`. (`pg-copy-streams` cannot be used: in pipeline mode `pg` accepts
 * only its own `Query` class.)
 *
 * The statement and the rows are sent together. The database reports when it is ready for the rows, but
 * waiting for that is not necessary: if it refuses the statement, it skips the rows that follow.
 */
import type { Buffer } from 'node:buffer'
import pg from 'pg'

type Done = (error: Error | undefined) => void

export class CopyQuery extends pg.Query {
  /** `pg` reads this property. */
  readonly query_timeout: number

  /** `messages`: the rows and the end of the copy, encoded by `encodeCopyMessages` (items/copy-rows.ts). */
  constructor(text: string, messages: readonly Buffer[], timeoutMs: number, done: Done) {
    super({ text }, done)
    this.query_timeout = timeoutMs
    this.submit = (connection) => {
      const { stream } = connection
      stream.cork()
      connection.query(text)
      for (const message of messages) stream.write(message)
      stream.uncork()
    }
  }

  /** The database asks for the rows, which are already sent. */
  handleCopyInResponse(): void {}
}

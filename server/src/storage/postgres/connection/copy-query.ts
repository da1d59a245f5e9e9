/**
 * COPY from here into a table, as a query that `pg` sends and follows like any other. (`pg-copy-streams` cannot do
 * it: while queries are pipelined `pg` takes none that is not a `Query` of its own.)
 *
 * All of it is sent at once. The database says when it is ready for the rows, and nobody waits for that: when it
 * refuses the statement, it passes over the rows that follow.
 */
import type { Buffer } from 'node:buffer'
import pg from 'pg'

type Done = (error: Error | undefined) => void

export class CopyQuery extends pg.Query {
  /** Where `pg` looks for it. */
  readonly query_timeout: number

  /** `messages`: what `copyMessages` made of the rows, its end included. */
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

  /** What it asks for is on its way. */
  handleCopyInResponse(): void {}
}

import type { Connection, Row, Statement } from './connection.ts'
import { isConnectionLost, OutcomeUnknownError } from './errors.ts'

/** Well below the time that old and new credentials both work. */
const borrowedMsMax = 1_000

/**
 * A pooled connection that several statements share. It is borrowed for the first statement and returned
 * after the last one, after an error, or after a second, so that a busy connection also follows a change of
 * credentials.
 */
export class SharedConnection {
  /** True: start no more statements on it. */
  isDone = false
  readonly #borrowed: Promise<Connection>
  readonly #until = performance.now() + borrowedMsMax
  #users = 0
  #lost: unknown
  #return: () => void = () => {}

  constructor(use: (work: (connection: Connection) => Promise<void>) => Promise<void>) {
    this.#borrowed = new Promise((resolve, reject) => {
      use((connection) => {
        resolve(connection)
        return new Promise((done, failed) => {
          this.#return = () => (this.#lost === undefined ? done() : failed(this.#lost))
        })
      }).catch(reject)
    })
  }

  async query(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    this.#users++
    let isSent = false
    try {
      const connection = await this.#borrowed
      isSent = true
      return await connection.query(statement, values)
    } catch (error) {
      if (!isConnectionLost(error)) throw error
      this.#lost ??= error
      this.isDone = true
      throw isSent ? new OutcomeUnknownError(error) : error
    } finally {
      this.#users--
      if (this.#users === 0 || performance.now() > this.#until) this.isDone = true
      if (this.#users === 0) this.#return()
    }
  }
}

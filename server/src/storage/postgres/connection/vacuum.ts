import type { Statement } from './connection.ts'
import type { Connections } from './connections.ts'

/**
 * Every leased and completed item leaves a dead row, and the index for leases begins with them: each lease
 * walks over all rows that were leased since the last vacuum. Autovacuum runs once a minute, which at 20,000
 * items per second is a million rows too late. So the server vacuums when there are many dead rows, for at
 * most a tenth of the time. The table of lease ends is vacuumed together with the items.
 */
export const vacuumLive: Statement = {
  text: 'vacuum (skip_locked, index_cleanup on, truncate off, parallel 0) redrive.items_live, redrive.lease_ends',
  isLong: true,
}

const deadRowsMin = 20_000
const pauseMsMin = 2_000
/** The pause after a vacuum, as a multiple of its duration. */
const pauseFactor = 10

export class Vacuum {
  readonly #connections: Connections
  #deadRows = 0
  #notBefore = 0
  #running: Promise<void> | undefined

  constructor(connections: Connections) {
    this.#connections = connections
  }

  /**
   * Counts dead rows, and starts a vacuum if there are many. Never waits and never fails: autovacuum runs
   * anyway.
   */
  note(deadRows: number): void {
    this.#deadRows += deadRows
    if (this.#deadRows < deadRowsMin || this.#running !== undefined || performance.now() < this.#notBefore)
      return
    this.#deadRows = 0
    this.#running = this.#run().finally(() => {
      this.#running = undefined
    })
  }

  async stop(): Promise<void> {
    this.#notBefore = Number.POSITIVE_INFINITY
    await this.#running
  }

  async #run(): Promise<void> {
    const startedAt = performance.now()
    try {
      await this.#connections.use((connection) => connection.query(vacuumLive))
    } catch {
      // The user does not own the table, or the database is down. Autovacuum or the next vacuum does it.
    }
    const now = performance.now()
    if (this.#notBefore === Number.POSITIVE_INFINITY) return
    this.#notBefore = now + Math.max(pauseMsMin, (now - startedAt) * pauseFactor)
  }
}

import type { Statement } from './connection.ts'
import type { Connections } from './connections.ts'

/**
 * A queue leaves a dead row for every item that it leases and completes, and the leasers' indexes begin
 * with all of them: each lease walks over what was leased since the last vacuum. Autovacuum looks once a
 * minute, which at 20,000 items a second is a million rows too late. So the server that makes them
 * has them taken away, as soon as they are many, and for at most a tenth of the time. With them goes what
 * is left of leases that ended.
 */
export const vacuumLive: Statement = {
  text: 'vacuum (skip_locked, index_cleanup on, truncate off, parallel 0) redrive.items_live, redrive.lease_ends',
  isLong: true,
}

const deadRowsMin = 20_000
const restMsMin = 2_000
const restShare = 10

export class Vacuum {
  readonly #connections: Connections
  #deadRows = 0
  #notBefore = 0
  #running: Promise<void> | undefined

  constructor(connections: Connections) {
    this.#connections = connections
  }

  /** Rows were leased or removed. Never waits, never fails: at worst autovacuum does it later. */
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
      // Not the owner of the table, or no database just now: autovacuum, or the next time.
    }
    const now = performance.now()
    if (this.#notBefore === Number.POSITIVE_INFINITY) return
    this.#notBefore = now + Math.max(restMsMin, (now - startedAt) * restShare)
  }
}

/**
 * Space for the writes that must work on a full disk: completing, deleting and discarding.
 *
 * They write new versions of rows, for which a table may need another page. So the table `disk_reserve`
 * occupies some space. When the disk is full, the table is emptied, and only these writes use the space. All
 * others are refused until the table can be filled again and there is more space besides it.
 *
 * The table is unlogged: filling it costs no write-ahead log, and a crash or a failover empties it. It is
 * filled again by the next check.
 */
import { KnownError } from '../../../errors.ts'
import type { Connection } from './connection.ts'
import { beginWrite, type Connections } from './connections.ts'
import { lacksPrivilege, toKnownError } from './errors.ts'

const reserveBytes = 8 * 1024 * 1024
/** With the fill factor of the table, this many rows have 8 MiB of pages. */
const reserveRows = 23_500
/** This much space must be free besides the reserve, or the disk counts as full. */
const freeBytesMin = 1024 * 1024
/** How often writes check a full disk, at most. */
const checkEveryMs = 1_000
/** How often a reserve that a crash or another server emptied is filled again. */
const fillEveryMs = 600_000

export class DiskSpace {
  /** A write failed for lack of space, and no check has shown since that there is some. */
  isFull = false
  readonly #connections: Connections
  /** False: the user of the database may not write to the table. */
  #mayReserve = true
  #filledAtMs = Number.NEGATIVE_INFINITY
  #checkedAtMs = Number.NEGATIVE_INFINITY
  #checking: Promise<void> | undefined

  constructor(connections: Connections) {
    this.#connections = connections
  }

  /** The disk is full: frees the reserved space for the writes that may use it. */
  async release(): Promise<void> {
    this.isFull = true
    this.#checkedAtMs = performance.now()
    // A check uses all the space for a moment.
    await this.#checking?.catch(() => {})
    await this.#empty()
  }

  /** For a write that may not use the reserve: rejects with STORE_FULL on a full disk. */
  async expectSpace(): Promise<void> {
    if (!this.isFull) return
    if (performance.now() - this.#checkedAtMs < checkEveryMs) throw this.createRefusal()
    await this.check()
  }

  /**
   * Checks whether a full disk has space again: rejects with STORE_FULL if not. On a disk that is not full,
   * fills the reserve if it is empty.
   */
  async check(): Promise<void> {
    if (!this.isFull && performance.now() - this.#filledAtMs < fillEveryMs) return
    this.#checking ??= this.#reserve().finally(() => {
      this.#checkedAtMs = performance.now()
      this.#checking = undefined
    })
    await this.#checking
  }

  /** The answer to a write that is refused while the disk is full. */
  createRefusal(): KnownError {
    const describe = (address: string) => `no space left on the disk of ${address}; the write was refused`
    return new KnownError('STORE_FULL', describe(this.#connections.address), undefined, describe('the store'))
  }

  async #reserve(): Promise<void> {
    const wasFull = this.isFull
    try {
      // A reserve that was released must not be all the space there is.
      if (wasFull) await this.#connections.transaction(beginWrite, writeBesides)
      if (this.#mayReserve) await this.#connections.transaction(beginWrite, fillReserve)
      this.isFull = false
    } catch (error) {
      const known = toKnownError(error, this.#connections.address)
      const isSpaceMissing = known instanceof KnownError && known.code === 'STORE_FULL'
      // Rows of a transaction that was rolled back still occupy their pages.
      if (isSpaceMissing) await this.#empty()
      if (isSpaceMissing && wasFull) throw this.createRefusal()
      if (lacksPrivilege(error) && this.#mayReserve) {
        this.#mayReserve = false
        return this.#reserve()
      }
      // A disk without space for the reserve is not full yet.
      if (!isSpaceMissing) throw known
    }
    this.#filledAtMs = performance.now()
  }

  async #empty(): Promise<void> {
    try {
      await this.#connections.transaction(beginWrite, (connection) =>
        connection.query({ text: 'truncate redrive.disk_reserve' }),
      )
    } catch {
      // The user may not truncate, or the catalog has no space either: writes fail as without a reserve.
    }
  }
}

/** Two servers at once: the second waits for the first, and finds the table filled. */
async function fillReserve(connection: Connection): Promise<void> {
  await connection.query({ text: 'lock table redrive.disk_reserve in share row exclusive mode' })
  await connection.query({
    text: `insert into redrive.disk_reserve (n) select n from generate_series(1, ${reserveRows}) n
      where not exists (select 1 from redrive.disk_reserve)`,
  })
}

/** Fails if the database cannot write the reserve and 1 MiB more. Leaves nothing behind, also if it fails. */
async function writeBesides(connection: Connection): Promise<void> {
  await connection.query({
    text: `create temporary table redrive_space_check on commit drop as
      select repeat(md5(n::text), 32) as filler
      from generate_series(1, ${(reserveBytes + freeBytesMin) / 1024}) n`,
  })
}

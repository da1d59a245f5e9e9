/**
 * Space for the writes that must work on a full disk: completing, deleting and discarding.
 *
 * Even a delete needs space, because it is written to the WAL first. So a file beside the database reserves
 * some. When the disk is full, the file is removed, and only these writes use the space. All others are
 * refused until the file can be created again and there is more space besides it.
 */
import { closeSync, openSync, rmSync, statfsSync, truncateSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { KnownError } from '../../../errors.ts'

/**
 * The WAL is checkpointed at 4 MiB. The checkpoint may add as much to the database file, and without it the
 * WAL grows: with a smaller reserve, a checkpoint alone could use it up.
 */
const reserveBytesMax = 8 * 1024 * 1024
/** The reserve is at most this share of the free space, so that a small disk is not full of it. */
const reserveShare = 1 / 2
/** This much space must be free besides the reserve, or the disk counts as full. */
const freeBytesMin = 1024 * 1024
/** How often a full disk is checked, at most. */
const checkEveryMs = 1_000
const block = new Uint8Array(64 * 1024)

export class DiskSpace {
  isFull = false
  readonly #path: string
  readonly #file: string
  #reservedBytes = 0
  #releasedBytes = 0
  #checkedAtMs = Number.NEGATIVE_INFINITY

  constructor(path: string) {
    this.#path = path
    this.#file = `${path}.reserve`
    this.#reserve(measureReserve(path))
  }

  /** The disk is full: the reserved space is free for the writes that may use it. */
  release(): void {
    this.isFull = true
    if (this.#reservedBytes === 0) return
    this.#releasedBytes = this.#reservedBytes
    this.#reservedBytes = 0
    this.#remove()
  }

  /** Checks whether there is space again. `nowMs`: of a monotonic clock. */
  check(nowMs: number): void {
    if (!this.isFull || nowMs - this.#checkedAtMs < checkEveryMs) return
    this.#checkedAtMs = nowMs
    if (!this.#reserve(this.#releasedBytes + freeBytesMin)) return
    truncateSync(this.#file, this.#releasedBytes)
    this.#reservedBytes = this.#releasedBytes
    this.isFull = false
  }

  /** The answer to a write that is refused while the disk is full. */
  createRefusal(): KnownError {
    const describe = (address: string) => `no space left to write to ${address}; the write was refused`
    return new KnownError('STORE_FULL', describe(this.#path), undefined, describe('the store'))
  }

  /** Removes the file: the next start creates it again. */
  close(): void {
    this.#remove()
  }

  /** False: there is not enough space. */
  #reserve(bytes: number): boolean {
    try {
      const file = openSync(this.#file, 'w')
      try {
        for (let written = 0; written < bytes; ) {
          written += writeSync(file, block, 0, Math.min(block.length, bytes - written))
        }
      } finally {
        closeSync(file)
      }
      this.#reservedBytes = bytes
      return true
    } catch {
      this.#remove()
      return false
    }
  }

  #remove(): void {
    try {
      rmSync(this.#file, { force: true })
    } catch {
      // The folder cannot be written to any more. The file does no harm.
    }
  }
}

function measureReserve(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(dirname(path))
    return Math.min(reserveBytesMax, Math.floor(bavail * bsize * reserveShare))
  } catch {
    return reserveBytesMax
  }
}

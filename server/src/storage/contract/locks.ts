/**
 * Cluster-wide locks with fencing. Each new holder gets a larger token. A write that contains `fence` is
 * rejected with LOCK_LOST unless its token is still the newest, so safety never depends on clocks.
 *
 * Another owner can take over a lock whose deadline has passed (`deadline <= now`); until then its holder can
 * still act. An owner that acquires its own lock again gets a new token, and the old token is lost.
 *
 * A lock must pass over although the clock was set back after it was acquired. All servers hold a lock for
 * the same time, so a deadline that is later than the requested one comes from a clock that was ahead: it is
 * shortened to the requested one, and the holder has to renew it.
 *
 * PostgreSQL decides by the clock of the database: `now` is at most the time of the database, and `deadline`
 * at most as much later as requested.
 */
import type { Instant } from '../../core/time/instant.ts'

export type LockCommand = AcquireLock | RenewLock | ReleaseLock | Fence

export type LockResults = {
  /** Null: another owner holds the lock. */
  'acquire-lock': HeldLock | null
  /** False: the lock was lost. */
  'renew-lock': boolean
  /** False: the lock was lost. */
  'release-lock': boolean
  fence: undefined
}

export type HeldLock = Readonly<{ name: string; token: number }>

export type AcquireLock = Readonly<{
  op: 'acquire-lock'
  name: string
  owner: string
  now: Instant
  deadline: Instant
}>
export type RenewLock = Readonly<{ op: 'renew-lock'; lock: HeldLock; deadline: Instant }>
export type ReleaseLock = Readonly<{ op: 'release-lock'; lock: HeldLock }>
/** Rejects the whole write with LOCK_LOST if the lock is no longer held. */
export type Fence = Readonly<{ op: 'fence'; lock: HeldLock }>

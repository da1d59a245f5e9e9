import { addDuration } from '../../../core/time/instant.ts'
import type { AcquireLock, Fence, HeldLock, ReleaseLock, RenewLock } from '../../contract/locks.ts'
import { lockLost } from '../../shared/lock-lost.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Statement } from '../connection/connection.ts'
import type { Transaction } from '../transaction.ts'

/**
 * A released lock keeps its row (deadline null), because the next token must be higher than every earlier
 * one.
 */
export async function acquireLock(
  transaction: Transaction,
  { name, owner, ...command }: AcquireLock,
): Promise<HeldLock | null> {
  const now = await transaction.boundByDatabaseClock(command.now)
  const deadline = addDuration(now, command.deadline - command.now)
  const [row] = await transaction.connection.query(acquire, [name, owner, deadline, now])
  if (row === undefined || readText(row, 'owner') !== owner) return null
  return { name, token: readNumber(row, 'token') }
}

const isFree = '(l.deadline is null or l.deadline <= $4 or l.owner = excluded.owner)'
const acquire: Statement = {
  name: 'acquire-lock',
  text: `insert into redrive.locks as l (name, owner, token, deadline) values ($1, $2, 1, $3)
    on conflict (name) do update set owner = case when ${isFree} then excluded.owner else l.owner end,
      token = case when ${isFree} then l.token + 1 else l.token end, deadline = excluded.deadline
    where ${isFree} or l.deadline > excluded.deadline
    returning token, owner`,
}

export async function renewLock(
  { connection }: Transaction,
  { lock, deadline }: RenewLock,
): Promise<boolean> {
  const rows = await connection.query(
    {
      name: 'renew-lock',
      text: `update redrive.locks set deadline = $3
        where name = $1 and token = $2 and deadline is not null returning 1`,
    },
    [lock.name, lock.token, deadline],
  )
  return rows.length === 1
}

export async function releaseLock({ connection }: Transaction, { lock }: ReleaseLock): Promise<boolean> {
  const rows = await connection.query(
    {
      name: 'release-lock',
      text: `update redrive.locks set deadline = null
        where name = $1 and token = $2 and deadline is not null returning 1`,
    },
    [lock.name, lock.token],
  )
  return rows.length === 1
}

/**
 * Locks the row until the commit, so that no other owner can take the lock over before the write is
 * committed.
 */
export async function fence(
  { connection }: Pick<Transaction, 'connection'>,
  { lock }: Pick<Fence, 'lock'>,
): Promise<undefined> {
  const rows = await connection.query(
    {
      name: 'fence',
      text: `select from redrive.locks where name = $1 and token = $2 and deadline is not null for share`,
    },
    [lock.name, lock.token],
  )
  if (rows.length === 0) throw lockLost(lock)
}

import type { AcquireLock, Fence, HeldLock, ReleaseLock, RenewLock } from '../../contract/locks.ts'
import { lockLost } from '../../shared/lock-lost.ts'
import { readNumber } from '../../shared/row-values.ts'
import type { Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

/**
 * A released lock keeps its row (deadline null), because the next token must be higher than every earlier
 * one.
 */
export function acquireLock({ database }: Transaction, command: AcquireLock): HeldLock | null {
  const row = database.get(
    `insert into locks (name, owner, token, deadline) values (?, ?, 1, ?)
     on conflict (name) do update set owner = excluded.owner, token = token + 1, deadline = excluded.deadline
     where deadline is null or deadline <= ? or owner = excluded.owner
     returning token`,
    command.name,
    command.owner,
    command.deadline,
    command.now,
  )
  return row === undefined ? null : { name: command.name, token: readNumber(row, 'token') }
}

export function renewLock({ database }: Transaction, { lock, deadline }: RenewLock): boolean {
  const sql = 'update locks set deadline = ? where name = ? and token = ? and deadline is not null'
  return database.run(sql, deadline, lock.name, lock.token) === 1
}

export function releaseLock({ database }: Transaction, { lock }: ReleaseLock): boolean {
  const sql = 'update locks set deadline = null where name = ? and token = ? and deadline is not null'
  return database.run(sql, lock.name, lock.token) === 1
}

export function fence(database: Database, { lock }: Fence): undefined {
  const sql = 'select 1 from locks where name = ? and token = ? and deadline is not null'
  if (database.get(sql, lock.name, lock.token) === undefined) throw lockLost(lock)
}

import type { AcquireLock, Fence, HeldLock, ReleaseLock, RenewLock } from '../../contract/locks.ts'
import { lockLost } from '../../shared/lock-lost.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

/**
 * A released lock keeps its row (deadline null), because the next token must be higher than every earlier
 * one.
 */
export function acquireLock({ database }: Transaction, command: AcquireLock): HeldLock | null {
  const { name, owner, deadline, now } = command
  const row = database.get(acquireSql, name, owner, deadline, now)
  if (row === undefined || readText(row, 'owner') !== owner) return null
  return { name, token: readNumber(row, 'token') }
}

const isFreeSql = '(l.deadline is null or l.deadline <= ?4 or l.owner = excluded.owner)'
const acquireSql = `insert into locks as l (name, owner, token, deadline) values (?1, ?2, 1, ?3)
  on conflict (name) do update set owner = case when ${isFreeSql} then excluded.owner else l.owner end,
    token = case when ${isFreeSql} then l.token + 1 else l.token end, deadline = excluded.deadline
  where ${isFreeSql} or l.deadline > excluded.deadline
  returning token, owner`

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

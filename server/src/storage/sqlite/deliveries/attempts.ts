import type { AttemptsQuery, RecordAttempts, StoredAttempt } from '../../contract/deliveries.ts'
import { attemptColumns, toAttemptRow, toStoredAttempt } from '../../shared/rows/delivery-rows.ts'
import type { Bound, Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

const insertAttempt = `insert into webhook_attempts (${attemptColumns.join(', ')})
  values (${attemptColumns.map(() => '?').join(', ')})`

export function recordAttempts({ database }: Transaction, { attempts }: RecordAttempts): undefined {
  for (const attempt of attempts) database.run(insertAttempt, ...toAttemptRow(attempt))
}

export function listAttempts(database: Database, query: AttemptsQuery): StoredAttempt[] {
  const { consumer, jobs, beforeNumber, countMax } = query
  const conditions: string[] = []
  const values: Bound[] = []
  if (jobs !== undefined) {
    conditions.push('job between ? and ?')
    values.push(jobs.from, jobs.to)
  }
  if (consumer !== undefined) {
    // A message has few attempts, a consumer many: the jobs are the index to use.
    conditions.push(jobs === undefined ? 'consumer = ?' : '+consumer = ?')
    values.push(consumer)
  }
  if (beforeNumber !== undefined) {
    conditions.push('number < ?')
    values.push(beforeNumber)
  }
  const sql = `select * from webhook_attempts where ${conditions.join(' and ')} order by number desc limit +?`
  return database.all(sql, ...values, countMax).map(toStoredAttempt)
}

import type { AttemptsQuery, NewAttempt, RecordAttempts, StoredAttempt } from '../../contract/deliveries.ts'
import { attemptColumns, toAttemptRow, toStoredAttempt } from '../../shared/rows/delivery-rows.ts'
import type { Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeBytes, encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'

type Column = (typeof attemptColumns)[number]
const types: Readonly<Record<Column, 'int4' | 'int8' | 'text' | 'bytea'>> = {
  consumer: 'int4',
  job: 'text',
  ordinal: 'int4',
  started_at: 'int8',
  latency_us: 'int8',
  address: 'text',
  status: 'int4',
  content_type: 'text',
  body: 'bytea',
  is_truncated: 'int4',
  failure: 'text',
}
const encoders = { int4: encodeInt4s, int8: encodeInt8s, text: encodeTexts, bytea: encodeBytes }

const insertAttempts: Statement = {
  name: 'insert-attempts',
  text: `insert into redrive.webhook_attempts (${attemptColumns.join(', ')})
    select * from unnest(${attemptColumns.map((name, at) => `$${at + 1}::${types[name]}[]`).join(', ')})`,
}

/** The attempts of all commands in one statement. */
export async function recordAttempts(
  { connection }: Transaction,
  commands: readonly RecordAttempts[],
): Promise<undefined[]> {
  const attempts = commands.flatMap((command): readonly NewAttempt[] => command.attempts)
  if (attempts.length > 0) await connection.query(insertAttempts, encodeColumns(attempts))
  return commands.map(() => undefined)
}

function encodeColumns(attempts: readonly NewAttempt[]): Buffer[] {
  const rows = attempts.map(toAttemptRow)
  return attemptColumns.map((name, at) => {
    // The values of a column have the type of its encoder, which the type of a row cannot express.
    const encode = encoders[types[name]] as (values: readonly unknown[]) => Buffer
    return encode(rows.map((row) => row[at]))
  })
}

export async function listAttempts(connections: Connections, query: AttemptsQuery): Promise<StoredAttempt[]> {
  const { consumer, jobs, beforeNumber, countMax } = query
  const conditions: string[] = []
  const values: unknown[] = [countMax]
  const bind = (value: unknown): string => `$${values.push(value)}`
  if (jobs !== undefined) conditions.push(`job between ${bind(jobs.from)} and ${bind(jobs.to)}`)
  // A message has few attempts, a consumer many: the jobs are the index to use.
  if (consumer !== undefined) {
    const value = `${bind(consumer)}::int4`
    conditions.push(jobs === undefined ? `consumer = ${value}` : `consumer + 0 = ${value}`)
  }
  if (beforeNumber !== undefined) conditions.push(`number < ${bind(beforeNumber)}::int8`)
  const text = `select * from redrive.webhook_attempts where ${conditions.join(' and ')} order by number desc limit $1`
  return (await connections.read({ text }, values)).map(toStoredAttempt)
}

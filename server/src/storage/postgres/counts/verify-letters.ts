/** Compares the counts of letters with the letters. Reads all letters. */
import type { Difference, QueueDifference } from '../../contract/difference.ts'
import { redrivesCounted } from '../../contract/letters.ts'
import {
  compareKeyed,
  type KeyedCount,
  type KeyedDifference,
  sumByQueue,
} from '../../shared/counts/compare-counts.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Connection, Row } from '../connection/connection.ts'
import { readQueueNames } from '../queues/queue-names.ts'
import { compareSums } from './letter-count-rollups.ts'
import { LetterCountChanges, minutesPerHour, openStates, usPerMinute } from './letter-counts.ts'

/** `correction`: the numbers to add to the counts. The sums of the counts are repaired separately. */
export type LetterDrift = Readonly<{ differences: Difference[]; correction: LetterCountChanges }>

const countedGroups = `select c.queue_id, c.group_id, c.state, c.redrives, sum(c.n)::int8 as n from redrive.letter_counts c
  group by 1, 2, 3, 4`
const actualGroups = `select f.queue_id, f.group_id, f.state, least(f.redrives, ${redrivesCounted}) as redrives, count(*) as n
  from redrive.items_sourced f where f.group_id is not null group by 1, 2, 3, 4`

const firstMinute = '(select minute from redrive.horizon)'
const countedOpen = `select c.queue_id, c.span, c.number, sum(c.n)::int8 as n from redrive.open_letters c
  where c.number * c.span::int8 >= ${firstMinute} group by 1, 2, 3`
const actualOpen = `select f.queue_id, s.span, (f.died_at / ${usPerMinute} / s.span)::int4 as number, count(*) as n
  from redrive.items_sourced f cross join (values (1), (${minutesPerHour})) as s(span)
  where f.group_id is not null and f.state in (${openStates.join(', ')})
    and f.died_at / ${usPerMinute} >= ${firstMinute}
  group by 1, 2, 3`

/** One difference for each queue that has a wrong count. */
export async function compareLetters(connection: Connection): Promise<LetterDrift> {
  const names = await readQueueNames(connection)
  const correction = new LetterCountChanges()
  const groups = await compare(connection, countedGroups, actualGroups, decodeGroupCount)
  for (const { row, counted, actual } of groups) {
    correction.addToGroup(row.queueId, row.groupId, row.state, row.retryCount, actual - counted)
  }
  const sums = await compareSums(connection, names)
  const open = await compare(connection, countedOpen, actualOpen, decodeOpenCount)
  for (const { row, counted, actual } of open) {
    correction.addOpen(row.queueId, row.span, row.number, actual - counted)
  }
  const differences = [...sumByQueue(groups, 'letters', names), ...sums, ...sumOpen(open, names)]
  return { differences, correction }
}

async function compare<Count extends KeyedCount>(
  connection: Connection,
  countedText: string,
  actualText: string,
  decode: (row: Row) => Count,
): Promise<KeyedDifference<Count>[]> {
  const actual = await connection.query({ text: actualText, isLong: true })
  const counted = await connection.query({ text: countedText, isLong: true })
  return compareKeyed(counted.map(decode), actual.map(decode))
}

type GroupCount = KeyedCount & Readonly<{ groupId: number; state: number; retryCount: number }>

function decodeGroupCount(row: Row): GroupCount {
  const groupId = readNumber(row, 'group_id')
  const state = readNumber(row, 'state')
  const retryCount = readNumber(row, 'redrives')
  const key = `${groupId}/${state}/${retryCount}`
  return { queueId: readNumber(row, 'queue_id'), groupId, state, retryCount, key, n: readNumber(row, 'n') }
}

type OpenCount = KeyedCount & Readonly<{ span: number; number: number }>

function decodeOpenCount(row: Row): OpenCount {
  const queueId = readNumber(row, 'queue_id')
  const span = readNumber(row, 'span')
  const number = readNumber(row, 'number')
  return { queueId, span, number, key: `${queueId}/${span}/${number}`, n: readNumber(row, 'n') }
}

/**
 * Each letter is counted in its minute and in its hour. Hours are reported only if all minutes of the queue
 * are right.
 */
function sumOpen(
  differences: readonly KeyedDifference<OpenCount>[],
  names: ReadonlyMap<number, string>,
): QueueDifference[] {
  const minutes = differences.filter(({ row }) => row.span !== minutesPerHour)
  const withMinutes = new Set(minutes.map(({ row }) => row.queueId))
  const hours = differences.filter(({ row }) => row.span === minutesPerHour && !withMinutes.has(row.queueId))
  return sumByQueue([...minutes, ...hours], 'open-minutes', names)
}

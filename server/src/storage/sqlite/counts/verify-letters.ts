/** Compares the counts of letters with the letters, and repairs them. Reads all letters. */
import type { QueueDifference } from '../../contract/difference.ts'
import { compareKeyed, type KeyedCount, sumByQueue } from '../../shared/counts/compare-counts.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Database, Row } from '../connection/database.ts'
import { listedCodes } from '../items/rows.ts'
import { readQueueIds, readQueueNames } from '../queues/queue-names.ts'
import { openStates, usPerMinute } from './letter-counts.ts'

const openCodes = openStates.map((state) => listedCodes[state]).join(', ')

const countedGroups = 'select queue_id, group_id, state, redrives, n from letter_counts'
const actualGroups = `select g.queue_id, a.* from (
    select group_id, letter_state as state, letter_redrives as redrives, count(*) as n from items
    where group_id is not null group by group_id, letter_state, letter_redrives
  ) a join groups g on g.id = a.group_id`

/** Rounded down, also before 1970. */
const minuteSql = `(died_at - (died_at % ${usPerMinute} + ${usPerMinute}) % ${usPerMinute}) / ${usPerMinute}`
const countedMinutes = 'select queue_id, minute, n from open_minutes'
const actualMinutes = `select queue_id, ${minuteSql} as minute, count(*) as n from items
  where letter_state in (${openCodes}) group by 1, 2`

/** One difference for each queue that has a wrong count. */
export function compareLetters(database: Database): QueueDifference[] {
  const groups = compareKeyed(
    database.all(countedGroups).map(decodeGroupCount),
    database.all(actualGroups).map(decodeGroupCount),
  )
  const minutes = compareKeyed(
    database.all(countedMinutes).map(decodeMinuteCount),
    database.all(actualMinutes).map(decodeMinuteCount),
  )
  const names = readQueueNames(database)
  return [...sumByQueue(groups, 'letters', names), ...sumByQueue(minutes, 'open-minutes', names)].sort(
    (a, b) => (a.queue < b.queue ? -1 : a.queue > b.queue ? 1 : 0),
  )
}

function decodeGroupCount(row: Row): KeyedCount {
  const key = `${readNumber(row, 'group_id')}/${readNumber(row, 'state')}/${readNumber(row, 'redrives')}`
  return { queueId: readNumber(row, 'queue_id'), key, n: readNumber(row, 'n') }
}

function decodeMinuteCount(row: Row): KeyedCount {
  const queueId = readNumber(row, 'queue_id')
  return { queueId, key: `${queueId}/${readNumber(row, 'minute')}`, n: readNumber(row, 'n') }
}

/** Replaces these counts of a queue by new ones from its rows. */
export function repairLetters(database: Database, queue: string): void {
  for (const id of readQueueIds(database, [queue])) {
    database.exec(`
      delete from letter_counts where queue_id = ${id};
      insert into letter_counts (queue_id, group_id, state, redrives, n)
        select queue_id, group_id, letter_state, letter_redrives, count(*) from items
        where queue_id = ${id} and group_id is not null group by group_id, letter_state, letter_redrives;
      delete from open_minutes where queue_id = ${id};
      insert into open_minutes (queue_id, minute, n)
        select queue_id, ${minuteSql}, count(*) from items
        where queue_id = ${id} and letter_state in (${openCodes}) group by 1, 2;`)
  }
}

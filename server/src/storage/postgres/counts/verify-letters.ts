/** Whether the counts of letters are what the letters say. Looks at all of them. */

import type { Difference, QueueDifference } from '../../contract/difference.ts'
import { redrivesCounted } from '../../contract/letters.ts'
import type { Connection, Row } from '../connection/connections.ts'
import { compareSums } from './letter-count-rollups.ts'
import { LetterTally, minutesPerHour, openStates } from './letter-counts.ts'

/** `correction`: what is to be added to the counts to make them right; their sums are mended by themselves. */
export type LetterDrift = Readonly<{ differences: Difference[]; correction: LetterTally }>

const counted = `select c.queue_id, c.group_id, c.state, c.redrives, sum(c.n)::int8 as n from redrive.letter_counts c
  group by 1, 2, 3, 4`
const actual = `select f.queue_id, f.group_id, f.state, least(f.redrives, ${redrivesCounted}) as redrives, count(*) as n
  from redrive.items_sourced f where f.group_id is not null group by 1, 2, 3, 4`

const horizon = '(select minute from redrive.horizon)'
const countedOpen = `select c.queue_id, c.span, c.number, sum(c.n)::int8 as n from redrive.open_letters c
  where c.number * c.span::int8 >= ${horizon} group by 1, 2, 3`
const actualOpen = `select f.queue_id, s.span, (f.died_at / 60000000 / s.span)::int4 as number, count(*) as n
  from redrive.items_sourced f cross join (values (1), (${minutesPerHour})) as s(span)
  where f.group_id is not null and f.state in (${openStates.join(', ')}) and f.died_at / 60000000 >= ${horizon}
  group by 1, 2, 3`

export async function compareLetters(connection: Connection): Promise<LetterDrift> {
  const names = new Map(
    (await connection.query({ text: 'select id, name from redrive.queues' })).map((row) => [
      row.id as number,
      row.name as string,
    ]),
  )
  const correction = new LetterTally()
  const differences = [
    ...(await compare(connection, names, 'letters', counted, actual, (row, by) =>
      correction.addCell(
        row.queue_id as number,
        row.group_id as number,
        row.state as number,
        row.redrives as number,
        by,
      ),
    )),
    ...(await compareSums(connection, names)),
    ...(await compare(connection, names, 'open-minutes', countedOpen, actualOpen, (row, by) =>
      correction.addOpen(row.queue_id as number, row.span as number, row.number as number, by),
    )),
  ]
  return { differences, correction }
}

/** One difference for each queue in which a count is wrong: what was counted where it is, and what is there. */
async function compare(
  connection: Connection,
  names: ReadonlyMap<number, string>,
  count: 'letters' | 'open-minutes',
  countedText: string,
  actualText: string,
  correct: (row: Row, by: number) => void,
): Promise<QueueDifference[]> {
  const there = byKey(await connection.query({ text: actualText, isLong: true }))
  const said = byKey(await connection.query({ text: countedText, isLong: true }))
  const sums = new Map<number, { counted: number; actual: number }>()
  const hours = new Map<number, { counted: number; actual: number }>()
  for (const key of new Set([...there.keys(), ...said.keys()])) {
    const row = (there.get(key) ?? said.get(key)) as Row
    const isActual = (there.get(key)?.n as number | undefined) ?? 0
    const isCounted = (said.get(key)?.n as number | undefined) ?? 0
    if (isActual === isCounted) continue
    correct(row, isActual - isCounted)
    // An hour is its minutes once more.
    const to = row.span === minutesPerHour ? hours : sums
    const sum = to.get(row.queue_id as number) ?? { counted: 0, actual: 0 }
    sum.counted += isCounted
    sum.actual += isActual
    to.set(row.queue_id as number, sum)
  }
  return [...new Map([...hours, ...sums])].map(([queueId, sum]) => ({
    queue: names.get(queueId) ?? '',
    partition: -1,
    count,
    ...sum,
  }))
}

function byKey(rows: readonly Row[]): Map<string, Row> {
  return new Map(
    rows.map((row) => {
      const { n, ...key } = row
      return [Object.values(key).join('/'), row]
    }),
  )
}

/**
 * Sums of the counts of letters: `letter_sums` over the groups of a queue, `slug_sums` over all groups of a
 * slug. The most frequent queries read these sums instead of the counts of each group. The statement that
 * writes the counts writes the sums too, in the same slot.
 */
import type { CountedAndActual, Difference } from '../../contract/difference.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Connection, Row } from '../connection/connection.ts'

type SumTable = Readonly<{
  name: 'letter_sums' | 'slug_sums'
  keys: readonly string[]
  /** The sums of `counts`, a table with the columns of `letter_counts`. */
  over(counts: string): string
  /** The queue or slug of a row. */
  subject(row: Row, queueNames: ReadonlyMap<number, string>): string
}>

const byQueue: SumTable = {
  name: 'letter_sums',
  keys: ['queue_id', 'state', 'redrives'],
  over: (counts) => `select l.queue_id, l.state, l.redrives, sum(l.n)::int8 as n from ${counts} l
    group by l.queue_id, l.state, l.redrives having sum(l.n) <> 0`,
  subject: (row, queueNames) => queueNames.get(readNumber(row, 'queue_id')) ?? '',
}

const bySlug: SumTable = {
  name: 'slug_sums',
  keys: ['slug', 'state'],
  over: (counts) => `select g.slug, l.state, sum(l.n)::int8 as n
    from ${counts} l cross join lateral (select f.slug from redrive.groups f where f.id = l.group_id offset 0) g
    group by g.slug, l.state having sum(l.n) <> 0`,
  subject: (row) => readText(row, 'slug'),
}

/**
 * The statements that add `counts` to the sums, as parts of a `with`. Sorted, so that writers lock in one
 * order.
 */
export function addToSums(counts: string, slot: string): string {
  return [byQueue, bySlug]
    .map((table) => `${table.name} as (${addSql(table, table.over(counts), slot)})`)
    .join(', ')
}

function addSql({ name, keys }: SumTable, sums: string, slot: string, by = 's.n'): string {
  const columns = keys.join(', ')
  return `insert into redrive.${name} as c (${columns}, slot, n)
    select ${keys.map((key) => `s.${key}`).join(', ')}, ${slot}, ${by} from (${sums}) s
    order by ${keys.map((_, index) => index + 1).join(', ')}
    on conflict (${columns}, slot) do update set n = c.n + excluded.n`
}

/** Call it before the counts of a queue are deleted, when no other transaction can change them. */
export async function dropSums(connection: Connection, queueId: number, slot: number): Promise<void> {
  const counts = '(select * from redrive.letter_counts where queue_id = $1)'
  await connection.query({ text: addSql(bySlug, bySlug.over(counts), '$2::int4', '-s.n') }, [queueId, slot])
  await connection.query({ text: 'delete from redrive.letter_sums where queue_id = $1' }, [queueId])
}

/** Selects the stored sums and the sums of the counts if they differ. */
function selectDifferences({ name, keys, over }: SumTable): string {
  const columns = keys.join(', ')
  return `select ${columns}, coalesce(s.n, 0) as counted, coalesce(l.n, 0) as actual, coalesce(l.n, 0) - coalesce(s.n, 0) as n
    from (select ${columns}, sum(c.n)::int8 as n from redrive.${name} c group by ${columns}) s
      full join (${over('redrive.letter_counts')}) l using (${columns})
    where coalesce(s.n, 0) <> coalesce(l.n, 0)`
}

/** One difference for each queue and each slug whose sums do not match its counts. */
export async function compareSums(
  connection: Connection,
  queueNames: ReadonlyMap<number, string>,
): Promise<Difference[]> {
  const queues = await sumDifferences(connection, byQueue, queueNames)
  const slugs = await sumDifferences(connection, bySlug, queueNames)
  return [
    ...[...queues].map(([queue, sum]) => ({ queue, partition: -1, count: 'letter-sums' as const, ...sum })),
    ...[...slugs].map(([slug, sum]) => ({ slug, count: 'letter-sums' as const, ...sum })),
  ]
}

async function sumDifferences(
  connection: Connection,
  table: SumTable,
  queueNames: ReadonlyMap<number, string>,
): Promise<Map<string, CountedAndActual>> {
  const sums = new Map<string, CountedAndActual>()
  for (const row of await connection.query({ text: selectDifferences(table) })) {
    const subject = table.subject(row, queueNames)
    const sum = sums.get(subject) ?? { counted: 0, actual: 0 }
    sums.set(subject, {
      counted: sum.counted + readNumber(row, 'counted'),
      actual: sum.actual + readNumber(row, 'actual'),
    })
  }
  return sums
}

/**
 * Sets the sums to the sums of the counts. Counts and sums change together, so a difference is always an
 * error.
 */
export async function repairSums(connection: Connection, slot: number): Promise<void> {
  for (const table of [byQueue, bySlug]) {
    await connection.query({ text: addSql(table, selectDifferences(table), '$1::int4') }, [slot])
  }
}

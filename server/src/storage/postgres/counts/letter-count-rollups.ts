/**
 * The counts of letters, summed up: `letter_sums` over the groups of a queue, `slug_sums` over all groups of a slug. What
 * people look at all the time is read from here, and costs no look at each group. Written by the statement that
 * writes the counts, in the same slot.
 */
import type { Difference } from '../../contract/difference.ts'
import type { Connection, Row } from '../connection/connections.ts'

type Table = Readonly<{
  name: 'letter_sums' | 'slug_sums'
  keys: readonly string[]
  /** The sums of `counts`, a table with the columns of `letter_counts`. */
  over(counts: string): string
  place(row: Row, names: ReadonlyMap<number, string>): string
}>

const byQueue: Table = {
  name: 'letter_sums',
  keys: ['queue_id', 'state', 'redrives'],
  over: (counts) => `select l.queue_id, l.state, l.redrives, sum(l.n)::int8 as n from ${counts} l
    group by l.queue_id, l.state, l.redrives having sum(l.n) <> 0`,
  place: (row, names) => names.get(row.queue_id as number) ?? '',
}

const bySlug: Table = {
  name: 'slug_sums',
  keys: ['slug', 'state'],
  over: (counts) => `select g.slug, l.state, sum(l.n)::int8 as n
    from ${counts} l cross join lateral (select f.slug from redrive.groups f where f.id = l.group_id offset 0) g
    group by g.slug, l.state having sum(l.n) <> 0`,
  place: (row) => row.slug as string,
}

/** The statements that add `counts` to the sums, as parts of a `with`. Sorted, so that writers meet in one order. */
export function addToSums(counts: string, slot: string): string {
  return [byQueue, bySlug]
    .map((table) => `${table.name} as (${add(table, table.over(counts), slot)})`)
    .join(', ')
}

function add({ name, keys }: Table, sums: string, slot: string, by = 's.n'): string {
  const columns = keys.join(', ')
  return `insert into redrive.${name} as c (${columns}, slot, n)
    select ${keys.map((key) => `s.${key}`).join(', ')}, ${slot}, ${by} from (${sums}) s
    order by ${keys.map((_, index) => index + 1).join(', ')}
    on conflict (${columns}, slot) do update set n = c.n + excluded.n`
}

/** Before the counts of the queue are deleted. Nobody else changes them any more. */
export async function dropSums(connection: Connection, queueId: number, slot: number): Promise<void> {
  const counts = '(select * from redrive.letter_counts where queue_id = $1)'
  await connection.query({ text: add(bySlug, bySlug.over(counts), '$2::int4', '-s.n') }, [queueId, slot])
  await connection.query({ text: 'delete from redrive.letter_sums where queue_id = $1' }, [queueId])
}

/** What is summed, and what the counts add up to, where these differ. */
function differing({ name, keys, over }: Table): string {
  const columns = keys.join(', ')
  return `select ${columns}, coalesce(s.n, 0) as counted, coalesce(l.n, 0) as actual, coalesce(l.n, 0) - coalesce(s.n, 0) as n
    from (select ${columns}, sum(c.n)::int8 as n from redrive.${name} c group by ${columns}) s
      full join (${over('redrive.letter_counts')}) l using (${columns})
    where coalesce(s.n, 0) <> coalesce(l.n, 0)`
}

/** One difference for each queue and each slug whose sums are not those of the counts. */
export async function compareSums(
  connection: Connection,
  names: ReadonlyMap<number, string>,
): Promise<Difference[]> {
  const differences: Difference[] = []
  for (const table of [byQueue, bySlug]) {
    const sums = new Map<string, { counted: number; actual: number }>()
    for (const row of await connection.query({ text: differing(table) })) {
      const place = table.place(row, names)
      const sum = sums.get(place) ?? { counted: 0, actual: 0 }
      sum.counted += row.counted as number
      sum.actual += row.actual as number
      sums.set(place, sum)
    }
    for (const [place, sum] of sums) {
      differences.push(
        table === byQueue
          ? { queue: place, partition: -1, count: 'letter-sums', ...sum }
          : { slug: place, count: 'letter-sums', ...sum },
      )
    }
  }
  return differences
}

/** The sums become what the counts are. Both change together: so what differs is wrong whenever it is looked at. */
export async function mendSums(connection: Connection, slot: number): Promise<void> {
  for (const table of [byQueue, bySlug]) {
    await connection.query({ text: add(table, differing(table), '$1::int4') }, [slot])
  }
}

/**
 * Puts dead letters into a store, many times faster than items could die: one item dies through the
 * engine, and its letter is copied with ids and times of its own. PostgreSQL makes the copies itself, and
 * they are counted as the engine would have counted them. SQLite imports them, which is quick enough.
 */
import { Client } from 'pg'
import { nextKsuids } from '../server/src/core/ksuid.ts'
import { type OpenedRedrive, openRedrive, produceItems } from './peers/redrive.ts'
import type { Place } from './places.ts'

export type Letters = Readonly<{
  count: number
  /** The queue in which they died, and its dead queue. Both are there already. */
  queue: string
  deadQueue: string
  onProgress(stored: number): void
}>

const daySeconds = 24 * 3600
/** They died one after the other during this time. */
const spanUs = 30 * daySeconds * 1_000_000
const copiesAtOnce = 50_000
const importsAtOnce = 2_000

export async function fillWithLetters({ target }: Place, letters: Letters): Promise<void> {
  const opened = await openRedrive(target)
  try {
    await letOneDie(opened, letters)
    if (target.kind === 'sqlite') await importLetters(opened, letters)
  } finally {
    await opened.close()
  }
  if (target.kind === 'postgres') await copyLetters(target.url, letters)
}

async function letOneDie({ engine }: OpenedRedrive, { queue }: Letters): Promise<void> {
  await produceItems(engine, queue, 1)
  const options = { clientId: 'bench', countMax: 1, timeoutMs: 10_000 }
  const { partition, items } = await engine.lease(queue, options)
  const error = { errorClass: 'Error', message: 'connect ECONNREFUSED 127.0.0.1:8081' }
  const given = items.map(({ id }) => ({ id, isDead: true, error }))
  const changes = await engine.retry(queue, partition, given)
  if (changes[0]?.to !== 'moved') throw new Error(`no letter was made: ${JSON.stringify(changes)}`)
}

async function importLetters({ engine }: OpenedRedrive, letters: Letters): Promise<void> {
  const { count, deadQueue, onProgress } = letters
  const [model] = await engine.listItems({ queue: deadQueue, countMax: 1 })
  if (model?.origin == null) throw new Error(`there is no letter in ${deadQueue}`)
  const { id, rootId, queue, partition, lease, ...like } = { lease: null, ...model }
  const { origin } = model
  // The one that died is one of them.
  for (let stored = 1; stored < count; ) {
    const more = Math.min(count - stored, importsAtOnce)
    const diedAt = diedAtOf(stored, count, model.createdAt)
    const sourceIds = nextKsuids(undefined, diedAt, more, Math.random)
    const copies = sourceIds.map((sourceId) => ({
      ...like,
      lease,
      sourceId,
      diedAt,
      origin: { ...origin, id: sourceId },
    }))
    await engine.importItems(deadQueue, partition, copies)
    stored += more
    onProgress(stored)
  }
}

/** What differs between copies of a letter; `t` is the letter, `n` the numbers of the copy. */
const ownColumns: Readonly<Record<string, string>> = {
  id: 'n.id',
  root_id: 'case when t.root_id is not null then n.id end',
  source_id: 'n.source_id',
  created_at: 'n.at',
  updated_at: 'n.at',
  died_at: 'n.at',
  expire_deadline: 'n.at + t.expire_deadline - t.created_at',
  origin: 'replace(t.origin, t.source_id, n.source_id)',
}

async function copyLetters(url: string, letters: Letters): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query("set synchronous_commit = off; set maintenance_work_mem = '512MB'")
    // Made anew when all letters are there, which takes a fraction of the time of growing them.
    const indexes =
      await client.query(`select indexrelid::regclass as name, pg_get_indexdef(indexrelid) as text
      from pg_index where indrelid = 'redrive.items_sourced'::regclass and not indisprimary`)
    for (const { name } of indexes.rows) await client.query(`drop index ${name}`)
    const model = await modelOf(client, letters)
    const createdSumMs = await storeCopies(client, model, letters)
    for (const { text } of indexes.rows) await client.query(text)
    await countCopies(client, model, letters.count - 1, createdSumMs)
  } finally {
    await client.end()
  }
}

/** The letter that is copied, the queue that has it, and the one in which it died. */
type Model = Readonly<{
  place: string
  queue_id: number
  origin_id: number
  partition: number
  created_at: string
}>

async function modelOf(client: Client, { queue, deadQueue }: Letters): Promise<Model> {
  const { rows } = await client.query<Model>(
    `select t.ctid::text as place, t.queue_id, o.id as origin_id, t.partition, t.created_at
     from redrive.items_sourced t join redrive.queues q on q.id = t.queue_id, redrive.queues o
     where q.name = $1 and o.name = $2`,
    [deadQueue, queue],
  )
  if (rows[0] === undefined) throw new Error(`there is no letter in ${deadQueue}`)
  return rows[0]
}

/** Gives the sum of their creation times, as the counts keep it. */
async function storeCopies(client: Client, model: Model, { count, onProgress }: Letters): Promise<bigint> {
  const columns = await client.query<{ name: string }>(`select attname as name from pg_attribute
    where attrelid = 'redrive.items_sourced'::regclass and attnum > 0 and not attisdropped order by attnum`)
  const names = columns.rows.map(({ name }) => name)
  const text = `with stored as (
      insert into redrive.items_sourced (${names.join(', ')})
      select ${names.map((name) => ownColumns[name] ?? `t.${name}`).join(', ')}
      from redrive.items_sourced t, unnest($2::text[], $3::text[], $4::int8[]) as n(id, source_id, at)
      where t.ctid = $1::tid returning created_at
    )
    select sum(created_at / 1000) as created_sum_ms from stored`
  let createdSumMs = 0n
  let lastId: string | undefined
  let lastSourceId: string | undefined
  // The one that died is one of them.
  for (let stored = 1; stored < count; ) {
    const more = Math.min(count - stored, copiesAtOnce)
    const diedAt = Array.from({ length: more }, (_, each) =>
      diedAtOf(stored + each, count, Number(model.created_at)),
    )
    const ids = nextKsuids(lastId, diedAt[0] ?? 0, more, Math.random)
    const sourceIds = nextKsuids(lastSourceId, diedAt[0] ?? 0, more, Math.random)
    const { rows } = await client.query({ name: 'copy', text }, [model.place, ids, sourceIds, diedAt])
    createdSumMs += BigInt(rows[0].created_sum_ms)
    lastId = ids.at(-1)
    lastSourceId = sourceIds.at(-1)
    stored += more
    onProgress(stored)
  }
  return createdSumMs
}

async function countCopies(
  client: Client,
  { queue_id, origin_id, partition }: Model,
  copies: number,
  createdSumMs: bigint,
): Promise<void> {
  const text = `insert into redrive.counts as c
      (queue_id, partition, slot, accepted, waiting, dead_lettered, created_sum_ms)
    values ($1, $2, 0, $3, $4, $5, $6) on conflict (queue_id, partition, slot) do update set
      accepted = c.accepted + excluded.accepted, waiting = c.waiting + excluded.waiting,
      dead_lettered = c.dead_lettered + excluded.dead_lettered,
      created_sum_ms = c.created_sum_ms + excluded.created_sum_ms`
  await client.query(text, [queue_id, partition, copies, copies, 0, String(createdSumMs)])
  await client.query(text, [origin_id, partition, copies, 0, copies, 0])
}

/** All before `now`, so that the newest id of the partition stays the newest. */
function diedAtOf(number: number, count: number, now: number): number {
  return now - Math.floor((spanUs * (count - number)) / count) - 1_000_000
}

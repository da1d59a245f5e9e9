/**
 * The same work in plain SQL: the same rows and indexes, but without counts, groups, audit rows and results.
 * This is the upper limit for a store on this machine at this moment.
 */
import { rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { createPgClient } from '../../server/src/storage/postgres/connection/tls-connection.ts'
import type { BenchStore } from '../bench-stores.ts'
import type { Measured } from '../report.ts'
import { runSql } from '../run-sql.ts'
import { batch, toMeasured } from './writes.ts'

const copyCallers = 4
const copiesPerRound = 50
const copyRounds = 6

/**
 * Copies letters from files of the database server into a plain table, one statement per file. This measures
 * the insertion of rows and index entries, without creating and sending the rows. Returns the best round.
 */
export async function measurePlainCopy(subject: string, url: string): Promise<Measured> {
  const [server] = await runSql(url, [
    'create schema bare',
    'create table bare.live (like redrive.items_sourced including all)',
    'show data_directory',
  ])
  const buildPath = (number: number): string => `${server?.data_directory}/bare-${number}.copy`
  const files = Array.from({ length: copiesPerRound }, (_, number) => buildPath(number))
  await runSql(
    url,
    files.map(
      (file, number) =>
        `copy (select * from redrive.items_sourced offset ${number * batch} limit ${batch}) to '${file}' (format binary)`,
    ),
  )
  const clients = Array.from({ length: copyCallers }, () => createPgClient(url))
  await Promise.all(clients.map((client) => client.connect()))
  const rounds: Measured[] = []
  for (let round = 0; round < copyRounds; round++) {
    await runSql(url, ['truncate bare.live'])
    const left = [...files]
    const times: number[] = []
    const startedAt = performance.now()
    await Promise.all(
      clients.map(async (client) => {
        for (let file = left.pop(); file !== undefined; file = left.pop()) {
          const began = performance.now()
          await client.query(`copy bare.live from '${file}' (format binary)`)
          times.push(performance.now() - began)
        }
      }),
    )
    rounds.push({
      ...toMeasured(subject, 'capture', copiesPerRound * batch, startedAt, times),
      callers: copyCallers,
    })
  }
  await Promise.all(clients.map((client) => client.end()))
  for (const file of files) rmSync(file, { force: true })
  await runSql(url, ['drop schema bare cascade'])
  return rounds.reduce((best, next) => (next.perSecond > best.perSecond ? next : best))
}

/** Moves the ended letters of a queue between two plain tables, with one commit per batch. */
export function measurePlainMove(subject: string, store: BenchStore, queue: string): Promise<Measured> {
  const { target } = store
  return target.kind === 'postgres'
    ? moveInDatabase(subject, target.url, queue)
    : moveInFile(subject, target.path, queue)
}

/**
 * Moves each batch with one statement. The statement selects each state separately, in the order of the
 * index; otherwise the database would sort all remaining rows for each batch.
 */
async function moveInDatabase(subject: string, url: string, queue: string): Promise<Measured> {
  await runSql(url, [
    'create schema bare',
    'create table bare.live (like redrive.items_sourced including all)',
    'create table bare.archive (like redrive.archive including all)',
    `insert into bare.live select t.* from redrive.items_sourced t join redrive.queues q on q.id = t.queue_id
     where q.name = '${queue}' and t.ended_at is not null`,
    'vacuum analyze bare.live',
  ])
  const [columns] = await runSql(url, [
    `select string_agg(attname, ', ' order by attnum) as names from pg_attribute
     where attrelid = 'bare.live'::regclass and attnum > 0 and not attisdropped`,
  ])
  const move = `with picked as materialized (
      select r.row_id from unnest('{3,4,5}'::int4[]) as s(state) cross join lateral (
        select t.ctid as row_id, t.ended_at, t.id from bare.live t
        where t.queue_id = (select id from redrive.queues where name = '${queue}') and t.state = s.state
          and t.ended_at < 9000000000000000
        order by t.ended_at, t.id limit ${batch} for update of t skip locked
      ) r order by r.ended_at, r.id limit ${batch}
    ), gone as (delete from bare.live t using picked p where t.ctid = p.row_id returning t.*
    ), kept as (insert into bare.archive (${columns?.names}, archived_at) select ${columns?.names}, 0 from gone)
    select count(*)::int4 as n from gone`
  const client = createPgClient(url)
  await client.connect()
  await client.query('set enable_seqscan = off')
  const measured = await measureMoves(subject, async () => {
    const { rows } = await client.query({ name: 'move', text: move })
    return rows[0].n
  })
  await client.end()
  await runSql(url, ['drop schema bare cascade'])
  return measured
}

/** Uses a separate file with the same tables as the store. */
async function moveInFile(subject: string, path: string, queue: string): Promise<Measured> {
  const barePath = `${path}.bare`
  const database = new DatabaseSync(barePath)
  database.exec('pragma journal_mode = wal; pragma synchronous = full')
  database.exec(`attach 'file:${path}?mode=ro' as store`)
  const schema = database
    .prepare(
      `select sql from store.sqlite_master where tbl_name in ('items', 'archive') and sql is not null order by type desc`,
    )
    .all()
  for (const { sql } of schema) database.exec(String(sql))
  const queueId = database.prepare('select id from store.queues where name = ?').get(queue)?.id ?? null
  database
    .prepare('insert into items select * from store.items where queue_id = ? and ended_at is not null')
    .run(queueId)
  database.exec('detach store; create temp table picked (row_id integer)')
  const states = [3, 4, 5].map(
    (state) => `select * from (select rowid as row_id, ended_at, id from items
      where queue_id = ${queueId} and state = ${state} and ended_at < 9000000000000000 order by ended_at, id limit ${batch})`,
  )
  const pick = database.prepare(
    `insert into picked select row_id from (${states.join(' union all ')}) order by ended_at, id limit ${batch}`,
  )
  // Some columns of live letters are not archived.
  const columns = database
    .prepare(
      "select group_concat(name, ', ') as names from pragma_table_info('archive') where name <> 'archived_at'",
    )
    .get()?.names
  const copy = database.prepare(
    `insert into archive (${columns}, archived_at) select ${columns}, 0 from items where rowid in picked`,
  )
  const remove = database.prepare('delete from items where rowid in picked')
  const measured = await measureMoves(subject, async () => {
    database.exec('begin immediate')
    const { changes } = pick.run()
    copy.run()
    remove.run()
    database.exec('delete from picked; commit')
    return Number(changes)
  })
  database.close()
  for (const each of [barePath, `${barePath}-wal`, `${barePath}-shm`]) rmSync(each, { force: true })
  return measured
}

async function measureMoves(subject: string, move: () => Promise<number>): Promise<Measured> {
  const times: number[] = []
  let moved = 0
  const startedAt = performance.now()
  for (;;) {
    const began = performance.now()
    const count = await move()
    if (count === 0) break
    times.push(performance.now() - began)
    moved += count
  }
  return toMeasured(subject, 'archive', moved, startedAt, times)
}

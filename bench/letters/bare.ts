/**
 * What the databases do by themselves: the same rows, the same indexes, plain SQL, and nothing counted, grouped, audited or
 * answered. No store can be faster than that on the machine as it is at the moment.
 */
import { rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import type { Place } from '../places.ts'
import type { Measured } from '../report.ts'
import { runSql } from '../run-sql.ts'
import { batch, measuredOf } from './writes.ts'

const copyCallers = 4
const copiesPerRound = 50
const copyRounds = 6

/**
 * Letters as files of the database server, each copied into a plain table by one statement: what taking rows in and
 * entering them into the indexes costs, without the making and sending of rows. The best round.
 */
export async function timeBareCopy(subject: string, url: string): Promise<Measured> {
  const [about] = await runSql(url, [
    'create schema bare',
    'create table bare.live (like redrive.items_sourced including all)',
    'show data_directory',
  ])
  const fileOf = (number: number): string => `${about?.data_directory}/bare-${number}.copy`
  const files = Array.from({ length: copiesPerRound }, (_, number) => fileOf(number))
  await runSql(
    url,
    files.map(
      (file, number) =>
        `copy (select * from redrive.items_sourced offset ${number * batch} limit ${batch}) to '${file}' (format binary)`,
    ),
  )
  const clients = Array.from({ length: copyCallers }, () => new Client({ connectionString: url }))
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
      ...measuredOf(subject, 'capture', copiesPerRound * batch, startedAt, times),
      callers: copyCallers,
    })
  }
  await Promise.all(clients.map((client) => client.end()))
  for (const file of files) rmSync(file, { force: true })
  await runSql(url, ['drop schema bare cascade'])
  return rounds.reduce((best, next) => (next.perSecond > best.perSecond ? next : best))
}

/** What ended of a queue moves between two plain tables, a batch and a commit at a time. */
export function timeBareMove(subject: string, place: Place, queue: string): Promise<Measured> {
  const { target } = place
  return target.kind === 'postgres'
    ? moveInDatabase(subject, target.url, queue)
    : moveInFile(subject, target.path, queue)
}

/**
 * One statement that moves. Each state is looked for by itself, as an index has it: whoever writes such a statement by hand
 * and does not would sort all that is left for each batch.
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
      select r.place from unnest('{3,4,5}'::int4[]) as s(state) cross join lateral (
        select t.ctid as place, t.ended_at, t.id from bare.live t
        where t.queue_id = (select id from redrive.queues where name = '${queue}') and t.state = s.state
          and t.ended_at < 9000000000000000
        order by t.ended_at, t.id limit ${batch} for update of t skip locked
      ) r order by r.ended_at, r.id limit ${batch}
    ), gone as (delete from bare.live t using picked p where t.ctid = p.place returning t.*
    ), kept as (insert into bare.archive (${columns?.names}, archived_at) select ${columns?.names}, 0 from gone)
    select count(*)::int4 as n from gone`
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query('set enable_seqscan = off')
  const measured = await timeMoves(subject, async () => {
    const { rows } = await client.query({ name: 'move', text: move })
    return rows[0].n
  })
  await client.end()
  await runSql(url, ['drop schema bare cascade'])
  return measured
}

/** In a file of its own, made as the store's is. */
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
  database.exec('detach store; create temp table picked (place integer)')
  const states = [3, 4, 5].map(
    (state) => `select * from (select rowid as place, ended_at, id from items
      where queue_id = ${queueId} and state = ${state} and ended_at < 9000000000000000 order by ended_at, id limit ${batch})`,
  )
  const pick = database.prepare(
    `insert into picked select place from (${states.join(' union all ')}) order by ended_at, id limit ${batch}`,
  )
  const copy = database.prepare('insert into archive select i.*, 0 from items i where rowid in picked')
  const remove = database.prepare('delete from items where rowid in picked')
  const measured = await timeMoves(subject, async () => {
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

async function timeMoves(subject: string, move: () => Promise<number>): Promise<Measured> {
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
  return measuredOf(subject, 'archive', moved, startedAt, times)
}

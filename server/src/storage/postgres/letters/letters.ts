/** Letters one by one: read, given up, brought back from the archive. How they are sent is in redrive.ts. */
import { discardLetter, restoreLetter } from '../../../core/letter.ts'
import { findDiscardRefusal } from '../../../core/letter-decisions.ts'
import { isStorableText } from '../../../core/storable-text.ts'
import type { ArchivedItem } from '../../contract/archive.ts'
import type {
  ArchivedLettersQuery,
  DiscardLetters,
  DiscardResult,
  LetterLocation,
  ListedArchived,
  ListedLetter,
  PayloadSize,
  RestoreLetters,
  RestoreResult,
} from '../../contract/letters.ts'
import { letterEntries } from '../../shared/audit-entries.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Row, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { int4s, texts, uuids } from '../connection/encode-arrays.ts'
import { StaleReadError } from '../connection/errors.ts'
import {
  arrayParameters,
  columnNames,
  encode,
  headColumns,
  isHeadColumn,
  listedColumns,
  readColumns,
  readHeadColumns,
  type StoredHead,
  toItem,
  toItemHead,
  toListedLetter,
} from '../items/rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { findBySource } from './import-letters.ts'
import { type ChangedLetter, holdLetters, isId, whyNotThere, writeLetters } from './letter-rows.ts'

const wholeColumns = readColumns.map((column) => `f.${column}`).join(', ')

function readFrom(name: string, table: 'items_sourced' | 'archive', columns: string): Statement {
  return {
    name,
    text: `select t.*, q.name as queue_name
      from unnest($1::uuid[], $2::text[]) with ordinality as w(uuid, letter_id, n)
        cross join lateral (
          select ${columns}
          from redrive.${table} f
          where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null offset 0
        ) t
        join redrive.queues q on q.id = t.queue_id
      order by w.n`,
  }
}
export const readLetters = readFrom('read-letters', 'items_sourced', wholeColumns)
const readHeads = readFrom('read-letter-heads', 'items_sourced', listedColumns)
export const readArchived = readFrom('read-archived-letters', 'archive', `${wholeColumns}, f.archived_at`)

export async function getLetters(
  connections: Connections,
  letterIds: readonly string[],
  bytes: 'head' | 'all' = 'all',
): Promise<ListedLetter[]> {
  const ids = letterIds.filter(isId)
  if (ids.length === 0) return []
  const rows = await connections.read(bytes === 'all' ? readLetters : readHeads, [uuids(ids), texts(ids)])
  const letterOf = bytes === 'all' ? toItem : toListedLetter
  return rows.map((row) => letterOf(row, row.queue_name as string))
}

export async function getArchivedLetters(
  connections: Connections,
  letterIds: readonly string[],
): Promise<ArchivedItem[]> {
  const ids = letterIds.filter(isId)
  if (ids.length === 0) return []
  return (await connections.read(readArchived, [uuids(ids), texts(ids)])).map(archivedOf)
}

/** The length of what is stored elsewhere stands beside its place. */
const weighIn = (name: string, table: string): Statement => ({
  name,
  text: `select w.letter_id, t.bytes from unnest($1::uuid[], $2::text[]) as w(uuid, letter_id)
    cross join lateral (
      select octet_length(f.payload) as bytes from redrive.${table} f
      where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null offset 0) t`,
})
const weigh: Readonly<Record<LetterLocation, Statement>> = {
  live: weighIn('weigh-letters', 'items_sourced'),
  archive: weighIn('weigh-archived', 'archive'),
}

export async function readPayloadSizes(
  connections: Connections,
  letterIds: readonly string[],
  place: LetterLocation = 'live',
): Promise<PayloadSize[]> {
  const ids = letterIds.filter(isId)
  if (ids.length === 0) return []
  const rows = await connections.read(weigh[place], [uuids(ids), texts(ids)])
  return rows.map((row) => ({ letterId: row.letter_id as string, payloadBytes: row.bytes as number }))
}

function archivedOf(row: Row): ArchivedItem {
  return { item: toItem(row, row.queue_name as string), archivedAt: row.archived_at as number }
}

export const findUuids: Statement = {
  name: 'find-uuids',
  text: `select w.uuid, coalesce(l.letter_id, a.letter_id) as letter_id from unnest($1::text[]) as w(uuid)
    left join lateral (
      select coalesce(f.root_id, f.id) as letter_id from redrive.items_sourced f
      where f.uuid = w.uuid::uuid and f.origin is not null offset 0) l on true
    left join lateral (
      select coalesce(f.root_id, f.id) as letter_id from redrive.archive f
      where f.uuid = w.uuid::uuid and f.origin is not null and f.uuid is not null limit 1) a on true`,
}

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export async function findLettersByUuid(
  connections: Connections,
  wanted: readonly string[],
): Promise<Readonly<{ uuid: string; letterId: string }>[]> {
  const queueRow = wanted.filter((uuid) => uuidForm.test(uuid))
  if (queueRow.length === 0) return []
  const rows = await connections.read(findUuids, [texts(queueRow)])
  return rows
    .filter((row) => row.letter_id !== null)
    .map((row) => ({ uuid: row.uuid as string, letterId: row.letter_id as string }))
}

/** A page of each queue, and the first of all. `$2`, `$3`: where to go on. */
export const pageOfArchive: Statement = {
  text: `select p.*, q.name as queue_name from redrive.queues q cross join lateral (
      select ${listedColumns}, f.archived_at from redrive.archive f
      where f.queue_id = q.id and f.origin is not null and (f.archived_at, f.id) < ($2::int8, $3::text)
      order by f.archived_at desc, f.id desc limit $4
    ) p
    where q.is_sourced and ($1::text[] is null or q.name = any ($1::text[]))
    order by p.archived_at desc, p.id desc limit $4`,
}

export async function listArchivedLetters(
  connections: Connections,
  query: ArchivedLettersQuery,
): Promise<ListedArchived[]> {
  const { queues, after, countMax } = query
  const rows = await connections.read(pageOfArchive, [
    queues === undefined ? null : texts(queues.filter(isStorableText)),
    after?.archivedAt ?? Number.MAX_SAFE_INTEGER,
    // Above every id.
    after?.id ?? 'z'.repeat(28),
    countMax,
  ])
  return rows.map((row) => ({
    item: toListedLetter(row, row.queue_name as string),
    archivedAt: row.archived_at as number,
  }))
}

export async function discardLetters(
  transaction: Transaction,
  command: DiscardLetters,
): Promise<DiscardResult[]> {
  const { letters, reason, now } = command
  const ids = letters.map(({ letterId }) => letterId)
  const held = await holdLetters(transaction, ids)
  const whyGone = await whyNotThere(transaction, ids, held)
  const changed: ChangedLetter[] = []
  const results = letters.map(({ letterId, campaign }): DiscardResult => {
    const found = held.get(letterId)
    const why = found === undefined ? whyGone(letterId) : findDiscardRefusal(found.letter)
    if (found === undefined || why !== undefined) {
      transaction.campaigns.move(campaign, 'pending', 'skipped', why ?? 'missing', now)
      return { letterId, isDiscarded: false, why: why ?? 'missing' }
    }
    const after = discardLetter(found.letter, reason, now, campaign?.id)
    changed.push({ queueRow: found.queueRow, before: found.letter, after })
    held.set(letterId, { queueRow: found.queueRow, letter: after })
    transaction.campaigns.move(campaign, 'pending', 'discarded', '', now)
    return { letterId, isDiscarded: true, why: null }
  })
  await writeLetters(transaction, changed)
  await insertAudit(transaction.connection, letterEntries(command.trace, results))
  return results
}

const peekArchived: Statement = {
  name: 'peek-archived',
  text: `select t.queue_id, t.partition from unnest($1::uuid[], $2::text[]) as w(uuid, letter_id)
    cross join lateral (
      select f.queue_id, f.partition from redrive.archive f
      where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null offset 0) t`,
}

const lockArchived: Statement = {
  name: 'lock-archived',
  text: `select t.* from (select * from unnest($1::uuid[], $2::text[]) as u(uuid, letter_id) order by u.uuid) w
    cross join lateral (
      select ${readHeadColumns.map((name) => `f.${name}`).join(', ')} from redrive.archive f
      where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null for update
    ) t`,
}

/** One statement: what leaves the archive is what enters the queue, bytes included. */
const restoreRows: Statement = {
  name: 'restore-letters',
  text: `with gone as (
      delete from redrive.archive t
      using unnest(${arrayParameters(headColumns, 1)}) as m(${headColumns.join(', ')})
        cross join lateral (select f.ctid as place from redrive.archive f where f.uuid = m.uuid offset 0) p
      where t.ctid = p.place
      returning ${columnNames.map((name) => `${isHeadColumn(name) ? 'm' : 't'}.${name}`).join(', ')}
    )
    insert into redrive.items_sourced (${columnNames.join(', ')}, is_sourced)
    select ${columnNames.join(', ')}, true from gone
    on conflict (queue_id, source_id) where source_id is not null do nothing returning id`,
}

export async function restoreLetters(
  transaction: Transaction,
  command: RestoreLetters,
): Promise<RestoreResult[]> {
  const { connection } = transaction
  const ids = [...new Set(command.letterIds)].filter(isId)
  const values = [uuids(ids), texts(ids)]
  // The partitions before the letters, as everywhere.
  const places = await connection.query(peekArchived, values)
  const queues = await transaction.getByIds(places.map((row) => row.queue_id as number))
  const queueRowOf = (row: Row) => queues.get(row.queue_id as number) as QueueRow
  await transaction.lockPartitions(
    places.map((row) => ({ queueRow: queueRowOf(row), partition: row.partition as number })),
  )
  const rows = places.length === 0 ? [] : await connection.query(lockArchived, values)
  const archived = new Map(rows.map((row) => [(row.root_id ?? row.id) as string, row]))
  const taken = await takenSources(transaction, rows)

  const restored: StoredHead[] = []
  const results = command.letterIds.map((letterId): RestoreResult => {
    const row = archived.get(letterId)
    if (row === undefined) return { letterId, isRestored: false, why: 'missing' }
    const source = row.source_id === null ? undefined : `${row.queue_id}/${row.source_id}`
    if (source !== undefined && taken.has(source)) return { letterId, isRestored: false, why: 'taken' }
    if (source !== undefined) taken.add(source)
    archived.delete(letterId)
    const queueRow = queueRowOf(row)
    const item = restoreLetter(toItemHead(row, queueRow.queue.name), command.now, queueRow.queue.redrive)
    restored.push({ queueId: queueRow.id, queue: queueRow.queue, item })
    return { letterId, isRestored: true, why: null }
  })
  if (restored.length === 0) return results
  const inserted = await connection.query(restoreRows, encode(headColumns, restored))
  // Somebody brought one of the source ids meanwhile: all of it once more, and then it is taken.
  if (inserted.length < restored.length) throw new StaleReadError('a source id')
  for (const { queueId, item } of restored) {
    transaction.tally.enter(queueId, item)
    transaction.tally.add(queueId, item.partition, 'archived', -1)
  }
  await insertAudit(connection, letterEntries(command.trace, results))
  return results
}

async function takenSources(transaction: Transaction, rows: readonly Row[]): Promise<Set<string>> {
  const sourced = rows.filter((row) => row.source_id !== null)
  if (sourced.length === 0) return new Set()
  const there = await transaction.connection.query(findBySource, [
    int4s(sourced.map((row) => row.queue_id as number)),
    texts(sourced.map((row) => row.source_id as string)),
  ])
  return new Set(there.map((row) => `${row.queue_id}/${row.source_id}`))
}

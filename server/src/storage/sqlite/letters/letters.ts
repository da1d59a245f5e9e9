/** What becomes of letters one by one, except how they are sent (redrive.ts) and how that ends by itself (letter-end.ts). */
import { withBytes } from '../../../core/item.ts'
import { ksuidRangeForUuid } from '../../../core/ksuid.ts'
import { discardLetter, isRedriving, restoreLetter } from '../../../core/letter.ts'
import { findDiscardRefusal } from '../../../core/letter-decisions.ts'
import type { ArchivedItem } from '../../contract/archive.ts'
import type {
  ArchivedLettersQuery,
  DiscardLetters,
  DiscardResult,
  EndRedriveResult,
  EndRedrives,
  LetterLocation,
  LetterResults,
  ListedArchived,
  ListedLetter,
  PayloadSize,
  PurgeArchive,
  RestoreLetters,
  RestoreResult,
} from '../../contract/letters.ts'
import { letterEntries, queueEntries } from '../../shared/audit-entries.ts'
import { takeStep } from '../../shared/byte-budget.ts'
import { insertAudit } from '../audit/audit.ts'
import { moveLetter } from '../campaigns/campaign-letters.ts'
import type { Database, Values } from '../connection/database.ts'
import { itemColumnList, itemColumns, listedColumnList, toItem, toListedLetter } from '../items/rows.ts'
import { insertItem, rewriteRow } from '../items/write-rows.ts'
import { readQueueNames } from '../queues/queue-names.ts'
import type { Transaction } from '../transaction.ts'
import { endLetter, findLetter, isLetterSql, whyNotThere } from './redrive-ends.ts'

export function endRedrives(transaction: Transaction, command: EndRedrives): EndRedriveResult[] {
  return command.ends.map(({ letterId, outcome, failure }) => {
    const found = findLetter(transaction, letterId)
    if (found?.letter.state !== 'leased' || !isRedriving(found.letter)) return { letterId, state: null }
    const end = { outcome, failure, at: command.now }
    return { letterId, state: endLetter(transaction, found.queueRow, found.letter, end).state }
  })
}

export function discard(transaction: Transaction, command: DiscardLetters): DiscardResult[] {
  const { reason, now } = command
  const results = command.letters.map(({ letterId, campaign }): DiscardResult => {
    const found = findLetter(transaction, letterId)
    const why = found === undefined ? whyNotThere(transaction, letterId) : findDiscardRefusal(found.letter)
    if (found === undefined || why !== undefined) {
      if (campaign) moveLetter(transaction, campaign, 'pending', 'skipped', why ?? 'missing', now)
      return { letterId, isDiscarded: false, why: why ?? 'missing' }
    }
    const after = discardLetter(found.letter, reason, now, campaign?.id)
    rewriteRow(transaction, found.queueRow, found.letter, after)
    if (campaign) moveLetter(transaction, campaign, 'pending', 'discarded', '', now)
    return { letterId, isDiscarded: true, why: null }
  })
  insertAudit(transaction.database, letterEntries(command.trace, results))
  return results
}

const archivedSql = `select ${itemColumnList}, archived_at, rowid from archive
  where root_id = ? and group_id is not null`
const archivedAtPlace = itemColumns.length
const archiveRowidPlace = itemColumns.length + 1

/** The archive goes with its queue, so what is in it has one. */
export function restore(transaction: Transaction, command: RestoreLetters): RestoreResult[] {
  const { database, queueCache, tally } = transaction
  const results = command.letterIds.map((letterId): RestoreResult => {
    const row = database.array(archivedSql, letterId)
    if (row === undefined) return { letterId, isRestored: false, why: 'missing' }
    const queueRow = queueCache.getById(row[0] as number)
    const archived = toItem(row, queueRow.queue.name)
    const letter = restoreLetter(archived, command.now, queueRow.queue.redrive)
    if (insertItem(transaction, queueRow, withBytes(letter, archived)) === undefined)
      return { letterId, isRestored: false, why: 'taken' }
    database.run('delete from archive where rowid = ?', row[archiveRowidPlace] as number)
    tally.add(queueRow.id, letter.partition, 'archived', -1)
    return { letterId, isRestored: true, why: null }
  })
  insertAudit(database, letterEntries(command.trace, results))
  return results
}

export function purgeArchive(
  { database, queueCache, tally }: Transaction,
  command: PurgeArchive,
): LetterResults['purge-archive'] {
  const { archivedBefore, countMax } = command
  const queueRow = queueCache.get(command.queue)
  const found = database
    .arrays(
      `select rowid, length(payload) from archive where queue_id = ? and archived_at < ?
       order by archived_at, id limit +?`,
      queueRow.id,
      archivedBefore,
      countMax,
    )
    .map(([rowid, bytes]) => ({ rowid: rowid as number, bytes: bytes as number }))
  const { step, isMore } = takeStep(found, ({ bytes }) => bytes, countMax)
  const purged = database.arrays(
    `delete from archive where rowid in (select value from json_each(?)) returning root_id, group_id, partition`,
    JSON.stringify(step.map(({ rowid }) => rowid)),
  )
  for (const [rootId, groupId, partition] of purged) {
    tally.add(queueRow.id, partition as number, 'archived', -1)
    tally.add(queueRow.id, partition as number, 'purged')
    if (groupId !== null) database.run('delete from letter_edits where letter_id = ?', rootId as string)
  }
  const count = purged.length
  insertAudit(database, queueEntries(command.trace, command.queue, count, { letters: count }))
  return { purged: count, isMore }
}

const letterSql = (columns: string) => `select ${columns} from items where ${isLetterSql} and root_id = ?`

export function getLetters(
  database: Database,
  letterIds: readonly string[],
  bytes: 'head' | 'all' = 'all',
): ListedLetter[] {
  const names = readQueueNames(database)
  const [columns, letterOf] = bytes === 'all' ? [itemColumnList, toItem] : [listedColumnList, toListedLetter]
  return letterIds.flatMap((letterId) => {
    const row = database.array(letterSql(columns), letterId)
    return row === undefined ? [] : [letterOf(row, names.get(row[0] as number) ?? '')]
  })
}

export function getArchivedLetters(database: Database, letterIds: readonly string[]): ArchivedItem[] {
  const names = readQueueNames(database)
  return letterIds.flatMap((letterId) => {
    const row = database.array(archivedSql, letterId)
    return row === undefined ? [] : [archivedOf(row, names)]
  })
}

function archivedOf(row: Values, names: ReadonlyMap<number, string>): ArchivedItem {
  const item = toItem(row, names.get(row[0] as number) ?? '')
  return { item, archivedAt: row[archivedAtPlace] as number }
}

const archivedBytesSql = 'select length(payload) from archive where root_id = ? and group_id is not null'

/** Its length stands in the head of a row: what a row has beyond its first page is not read. */
export function readPayloadSizes(
  database: Database,
  letterIds: readonly string[],
  place: LetterLocation = 'live',
): PayloadSize[] {
  const sql = place === 'live' ? letterSql('length(payload)') : archivedBytesSql
  return letterIds.flatMap((letterId) => {
    const row = database.array(sql, letterId)
    return row === undefined ? [] : [{ letterId, payloadBytes: row[0] as number }]
  })
}

/** A UUID is the upper part of the id: those that begin with it stand next to each other. */
export function findLettersByUuid(
  database: Database,
  uuids: readonly string[],
): Readonly<{ uuid: string; letterId: string }>[] {
  return uuids.flatMap((uuid) => {
    const range = ksuidRangeForUuid(uuid)
    if (range === undefined) return []
    const live = `select root_id from items where ${isLetterSql} and root_id between ? and ? limit 1`
    const old = 'select root_id from archive where group_id is not null and root_id between ? and ? limit 1'
    const [first, last] = [range.first, range.last]
    // One that is brought back between the two looks is live by then.
    const row =
      database.array(live, first, last) ??
      database.array(old, first, last) ??
      database.array(live, first, last)
    return row === undefined ? [] : [{ uuid, letterId: row[0] as string }]
  })
}

/** Queues that never had a letter are passed over, however much else of them is archived. */
export function listArchivedLetters(database: Database, query: ArchivedLettersQuery): ListedArchived[] {
  const { queues, after, countMax } = query
  const queueRow = database
    .arrays('select id, name from queues q where exists (select 1 from groups where queue_id = q.id)')
    .filter(([, name]) => queues === undefined || queues.includes(name as string))
  const beyond = after === undefined ? '' : 'and (archived_at, id) < (?, ?)'
  const places = queueRow
    .flatMap(([queueId]) =>
      database.arrays(
        `select archived_at, id, rowid from archive where queue_id = ? and group_id is not null ${beyond}
         order by archived_at desc, id desc limit +?`,
        queueId as number,
        ...(after === undefined ? [] : [after.archivedAt, after.id]),
        countMax,
      ),
    )
    .sort(newestFirst)
    .slice(0, countMax)
  const names = new Map(queueRow.map(([id, name]) => [id as number, name as string]))
  const sql = `select ${listedColumnList} from archive where rowid = ?`
  return places.map(([archivedAt, , rowid]) => {
    const row = database.array(sql, rowid as number) as Values
    return { item: toListedLetter(row, names.get(row[0] as number) ?? ''), archivedAt: archivedAt as number }
  })
}

function newestFirst([aAt, aId]: Values, [bAt, bId]: Values): number {
  return (bAt as number) - (aAt as number) || ((aId as string) > (bId as string) ? -1 : 1)
}

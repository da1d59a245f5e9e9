/**
 * Cancels redrives: removes their items from the target queues, and makes the letters as they were before.
 *
 * Items are locked before letters, as by every command that ends a redrive. The letters are read once without
 * a lock to find their items. If a worker leases an item first, its row is not waiting when the lock is
 * granted, and the redrive is not cancelled; otherwise the lease skips the locked row.
 */

import { cancelRedrive } from '../../../core/dead-letters/letter.ts'
import {
  type CancelRefusal,
  findCancelRefusal,
  locateRedrivenItem,
  type RedriveLocation,
} from '../../../core/dead-letters/letter-decisions.ts'
import type { ItemHead, LeasedHead } from '../../../core/items/item.ts'
import type { CancelRedriveResult, CancelRedrives } from '../../contract/letters.ts'
import { createLetterEntries } from '../../shared/audit/audit-entries.ts'
import { readNumber, readText, readTextOrNull } from '../../shared/rows/row-values.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeTexts, encodeUuids } from '../connection/encode-arrays.ts'
import { countRemoved, deleteByIds } from '../items/remove.ts'
import { decodeState, readHeadColumns, toItemHead } from '../items/rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { type ChangedLetter, isKsuid, locateMissing, lockLetters, writeLetters } from './letter-rows.ts'

type SentItem = Readonly<{
  queueRow: QueueRow
  partition: number
  id: string
  item: Pick<ItemHead, 'state' | 'letterId' | 'retryCount' | 'attempts'>
}>

export async function cancelRedrives(
  transaction: Transaction,
  command: CancelRedrives,
): Promise<CancelRedriveResult[]> {
  const { letterIds, now } = command
  const items = await lockItems(transaction, letterIds)
  const locked = await lockLetters(transaction, letterIds)
  const locate = await locateMissing(transaction, letterIds, locked)
  const changed: ChangedLetter[] = []
  const removed: SentItem[] = []
  const results = letterIds.map((letterId): CancelRedriveResult => {
    const found = locked.get(letterId)
    const item = items.get(letterId)
    const refusal: CancelRefusal | undefined =
      found === undefined ? locate(letterId) : findCancelRefusal(found.letter, item?.item)
    if (found === undefined || item === undefined || refusal !== undefined) {
      return { letterId, isCancelled: false, refusal: refusal ?? 'leased', target: null }
    }
    const { queueRow, letter } = found
    // A letter that is being redriven is leased.
    const after = cancelRedrive(letter as LeasedHead, now, queueRow.queue.redrive)
    transaction.campaigns.move(
      letter.letter?.redrives[0]?.campaign,
      'sent',
      'skipped',
      'redrive-cancelled',
      now,
    )
    changed.push({ queueRow, before: letter, after })
    locked.set(letterId, { queueRow, letter: after })
    removed.push(item)
    return { letterId, isCancelled: true, refusal: null, target: item.queueRow.queue.name }
  })
  await removeItems(transaction, removed)
  await writeLetters(transaction, changed)
  await insertAudit(transaction.connection, createLetterEntries(command.audit, results))
  return results
}

const readLetters: Statement = {
  name: 'read-redriven-letters',
  text: `select ${readHeadColumns.map((name) => `f.${name}`).join(', ')}
    from unnest($1::uuid[], $2::text[]) as w(uuid, letter_id) join redrive.items_sourced f
      on f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null`,
}

const lockRedrivenItems: Statement = {
  name: 'lock-redriven-items',
  text: `select w.letter_id as letter, t.* from unnest($1::int4[], $2::int4[], $3::text[], $4::text[])
      as w(queue_id, partition, id, letter_id) cross join lateral (
      select f.queue_id, f.partition, f.id, f.state, f.letter_id, f.redrives, f.attempts from redrive.items_live f
      where f.queue_id = w.queue_id and f.partition = w.partition and f.id = w.id for update
    ) t`,
}

/** Locks the items of the redrives in progress, and returns them by the ids of their letters. */
async function lockItems(
  transaction: Transaction,
  letterIds: readonly string[],
): Promise<Map<string, SentItem>> {
  const located = await locateItems(transaction, letterIds)
  const items = new Map<string, SentItem>()
  if (located.length === 0) return items
  const rows = await transaction.connection.query(lockRedrivenItems, [
    encodeInt4s(located.map(({ queueRow }) => queueRow.id)),
    encodeInt4s(located.map(({ location }) => location.partition)),
    encodeTexts(located.map(({ location }) => location.id)),
    encodeTexts(located.map(({ letterId }) => letterId)),
  ])
  const queues = new Map(located.map(({ queueRow }) => [queueRow.id, queueRow]))
  for (const row of rows) {
    const queueRow = queues.get(readNumber(row, 'queue_id')) as QueueRow
    const state = decodeState(row.state)
    const item = {
      // A scheduled item waits, too, but a redrive is never scheduled before it was leased.
      state: state === 'scheduled' ? 'waiting' : state,
      letterId: readTextOrNull(row, 'letter_id'),
      retryCount: readNumber(row, 'redrives'),
      attempts: readNumber(row, 'attempts'),
    } as const
    items.set(readText(row, 'letter'), {
      queueRow,
      partition: readNumber(row, 'partition'),
      id: readText(row, 'id'),
      item,
    })
  }
  return items
}

type LocatedItem = Readonly<{ letterId: string; queueRow: QueueRow; location: RedriveLocation }>

/** In the order in which all commands lock items. */
async function locateItems(
  transaction: Transaction,
  letterIds: readonly string[],
): Promise<readonly LocatedItem[]> {
  const ids = [...new Set(letterIds)].filter(isKsuid)
  const rows = await transaction.connection.query(readLetters, [encodeUuids(ids), encodeTexts(ids)])
  const located: LocatedItem[] = []
  for (const row of rows) {
    const letter = toItemHead(row, '')
    const location = locateRedrivenItem(letter)
    const queueRow = location && (await transaction.find(location.queue))
    if (location !== undefined && queueRow !== undefined) {
      located.push({ letterId: letter.rootId, queueRow, location })
    }
  }
  return located.sort(
    (a, b) =>
      a.queueRow.id - b.queueRow.id ||
      a.location.partition - b.location.partition ||
      (a.location.id < b.location.id ? -1 : 1),
  )
}

async function removeItems(transaction: Transaction, items: readonly SentItem[]): Promise<void> {
  if (items.length === 0) return
  const rows = await transaction.connection.query(deleteByIds, [
    encodeInt4s(items.map(({ queueRow }) => queueRow.id)),
    encodeInt4s(items.map(({ partition }) => partition)),
    encodeTexts(items.map(({ id }) => id)),
  ])
  countRemoved(transaction, rows, 'deleted')
}

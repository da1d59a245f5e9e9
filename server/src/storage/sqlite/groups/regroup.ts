/** Groups letters again, and moves letters to the group of a split. */
import { KnownError } from '../../../errors.ts'
import type { CreateSplit, GroupResults, RegroupLetters } from '../../contract/groups.ts'
import { isArrivalMoved, toSplitFingerprint } from '../../shared/letters/split-fingerprint.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'
import { readRulePayload } from '../items/write-rows.ts'
import { type FoundLetter, findLetter } from '../letters/letter-rows.ts'
import type { Transaction } from '../transaction.ts'
import { listMembers } from './resolve-groups.ts'

const copySql = `insert into groups (queue_id, fingerprint, cause_key, bucket, origin, reason, slug, error_class, title,
    template, first_seen_at, merged_into, pinned_title)
  select queue_id, ?, ?, '', origin, reason, slug, error_class, title, '', first_seen_at, ?, ? from groups where id = ?
  on conflict (queue_id, fingerprint) do nothing`

export function createSplit(
  { database, groups }: Transaction,
  { splitId, groupId, title }: CreateSplit,
): GroupResults['create-split'] {
  const fingerprint = toSplitFingerprint(splitId)
  const source = database.getArray(
    'select coalesce(merged_into, id), queue_id from groups where id = ?',
    groupId,
  )
  if (source === undefined) throw new KnownError('GROUP_NOT_FOUND', `group ${groupId} does not exist`)
  database.run(copySql, fingerprint, fingerprint, null, title, readNumber(source, 0))
  groups.invalidate()
  const created = 'select id from groups where queue_id = ? and fingerprint = ?'
  return { groupId: readNumber(database.getArray(created, readNumber(source, 1), fingerprint) ?? [], 0) }
}

export function regroupLetters(
  transaction: Transaction,
  { letterIds, split, now }: RegroupLetters,
): GroupResults['regroup-letters'] {
  const sources = split === null ? undefined : new Set(listMembers(transaction.database, [split.groupId]))
  let moved = 0
  for (const letterId of new Set(letterIds)) {
    const found = findLetter(transaction, letterId)
    const from = found?.letter.groupId ?? null
    if (found === undefined || from === null || sources?.has(from) === false) continue
    const to = split === null ? findGroup(transaction, found) : findSplitGroup(transaction, split, from)
    if (to === undefined || to === from) continue
    moveLetter(transaction, found, to, now)
    moved++
  }
  return { moved }
}

function findGroup(transaction: Transaction, { queueRow, letter }: FoundLetter): number | undefined {
  const readPayload = () => readRulePayload(transaction, queueRow, letter)
  const seenAt = letter.deadLetteredAt ?? letter.createdAt
  return transaction.groups.findOrCreate(queueRow, letter, seenAt, { readPayload })
}

/** A copy of the letter's group, which is part of the group of the split. */
function findSplitGroup(
  { database, groups }: Transaction,
  { splitId, into }: NonNullable<RegroupLetters['split']>,
  from: number,
): number {
  const source = database.getArray('select fingerprint, queue_id from groups where id = ?', from) ?? []
  const fingerprint = toSplitFingerprint(splitId, readText(source, 0))
  const known = findByFingerprint(database, readNumber(source, 1), fingerprint)
  if (known !== undefined) return known
  const target =
    database.getArray('select coalesce(merged_into, id), cause_key from groups where id = ?', into) ?? []
  database.run(copySql, fingerprint, readText(target, 1), readNumber(target, 0), null, from)
  groups.invalidate()
  return findByFingerprint(database, readNumber(source, 1), fingerprint) ?? into
}

function findByFingerprint(database: Database, queueId: number, fingerprint: string): number | undefined {
  const sql = 'select id from groups where queue_id = ? and fingerprint = ?'
  const row = database.getArray(sql, queueId, fingerprint)
  return row === undefined ? undefined : readNumber(row, 0)
}

function moveLetter(
  transaction: Transaction,
  { queueRow, letter, rowid }: FoundLetter,
  to: number,
  now: number,
): void {
  const { database, countChanges } = transaction
  const from = letter.groupId as number
  const at = letter.deadLetteredAt ?? letter.createdAt
  countChanges.leave(queueRow.id, letter)
  database.run('update items set group_id = ? where rowid = ?', to, rowid)
  countChanges.enter(queueRow.id, { ...letter, groupId: to })
  if (isArrivalMoved(letter, now)) countChanges.letters.addArrival(queueRow.id, from, at, -1)
  countChanges.letters.addArrival(queueRow.id, to, at)
  transaction.groups.lowerFirstSeen(to, at)
}

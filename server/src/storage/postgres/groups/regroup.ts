/** Groups letters again, and moves letters to the group of a split. */
import { KnownError } from '../../../errors.ts'
import type { CreateSplit, GroupResults, RegroupLetters } from '../../contract/groups.ts'
import { isArrivalMoved, toSplitFingerprint } from '../../shared/letters/split-fingerprint.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeTexts, encodeUuids } from '../connection/encode-arrays.ts'
import { isInt4 } from '../counts/count-conditions.ts'
import { assignGroups } from '../letters/groups.ts'
import { type FoundLetter, lockLetters } from '../letters/letter-rows.ts'
import type { Transaction } from '../transaction.ts'
import { lockGroups } from './merge-groups.ts'
import { listMembers } from './resolve-groups.ts'

const readSource: Statement = {
  name: 'read-group-to-split',
  text: `select coalesce(g.merged_into, g.id) as id, g.queue_id from redrive.groups g where g.id = $1`,
}
/** Copies of groups, with new fingerprints. */
const copyGroups: Statement = {
  name: 'copy-groups-for-split',
  text: `insert into redrive.groups (queue_id, fingerprint, cause_key, bucket, origin, reason, slug, error_class, title,
      template, first_seen_at, merged_into, pinned_title)
    select g.queue_id, w.fingerprint, $3, '', g.origin, g.reason, g.slug, g.error_class, g.title, '', g.first_seen_at,
      $4, $5
    from unnest($1::int4[], $2::text[]) as w(id, fingerprint) join redrive.groups g on g.id = w.id
    on conflict (queue_id, fingerprint) do nothing`,
}
const findCopies: Statement = {
  name: 'find-groups-of-split',
  text: `select f.id, f.fingerprint from unnest($1::int4[], $2::text[]) as w(id, fingerprint)
    join redrive.groups g on g.id = w.id
    cross join lateral (
      select c.id, c.fingerprint from redrive.groups c
      where c.queue_id = g.queue_id and c.fingerprint = w.fingerprint offset 0) f`,
}

export async function createSplit(
  { connection }: Transaction,
  { splitId, groupId, title }: CreateSplit,
): Promise<GroupResults['create-split']> {
  const [source] = isInt4(groupId) ? await connection.query(readSource, [groupId]) : []
  if (source === undefined) throw new KnownError('GROUP_NOT_FOUND', `group ${groupId} does not exist`)
  const fingerprint = toSplitFingerprint(splitId)
  const keys = [encodeInt4s([readNumber(source, 'id')]), encodeTexts([fingerprint])]
  await connection.query(copyGroups, [...keys, fingerprint, null, title])
  const [created = {}] = await connection.query(findCopies, keys)
  return { groupId: readNumber(created, 'id') }
}

export async function regroupLetters(
  transaction: Transaction,
  { letterIds, split, now }: RegroupLetters,
): Promise<GroupResults['regroup-letters']> {
  const { connection } = transaction
  const locked = [...(await lockLetters(transaction, letterIds)).values()]
  const letters = locked.filter(({ letter }) => letter.groupId !== null)
  const targets =
    split === null
      ? await findGroups(transaction, letters)
      : await findSplitGroups(connection, letters, split)
  const moved = letters.flatMap((found, index) => {
    const to = targets[index]
    return to === undefined || to === found.letter.groupId ? [] : [{ ...found, to }]
  })
  for (const { queueRow, letter, to } of moved) {
    const after = { ...letter, groupId: to }
    const at = letter.deadLetteredAt ?? letter.createdAt
    transaction.countChanges.leave(queueRow.id, letter)
    transaction.countChanges.enter(queueRow.id, after)
    const { letters: counts } = transaction.countChanges
    if (isArrivalMoved(letter, now)) counts.addArrival(queueRow.id, letter.groupId as number, at, -1)
    counts.addArrival(queueRow.id, to, at)
  }
  if (moved.length > 0) {
    await connection.query(moveRows, [
      encodeUuids(moved.map(({ letter }) => letter.rootId)),
      encodeTexts(moved.map(({ letter }) => letter.rootId)),
      encodeInt4s(moved.map(({ to }) => to)),
    ])
  }
  return { moved: moved.length }
}

const moveRows: Statement = {
  name: 'move-letters-to-groups',
  text: `update redrive.items_sourced t set group_id = a.group_id
    from unnest($1::uuid[], $2::text[], $3::int4[]) as a(uuid, letter_id, group_id)
      cross join lateral (
        select f.ctid as location from redrive.items_sourced f
        where f.uuid = a.uuid and coalesce(f.root_id, f.id) = a.letter_id and f.origin is not null offset 0) p
    where t.ctid = p.location`,
}

async function findGroups(
  transaction: Transaction,
  letters: readonly FoundLetter[],
): Promise<(number | undefined)[]> {
  const grouped = await assignGroups(
    transaction,
    letters.map(({ queueRow, letter }) => ({ queueId: queueRow.id, queue: queueRow.queue, item: letter })),
    true,
    letters.map(({ queueRow, letter: { partition, id } }) => ({ queueId: queueRow.id, partition, id })),
  )
  return grouped.map(({ item }) => item.groupId ?? undefined)
}

const readMembers: Statement = {
  name: 'read-groups-of-letters',
  text: 'select g.id, g.fingerprint from redrive.groups g where g.id = any ($1::int4[])',
}
const readTarget: Statement = {
  name: 'read-group-of-split',
  text: `select coalesce(g.merged_into, g.id) as shown_as, g.cause_key, g.queue_id
    from redrive.groups g where g.id = $1`,
}

/** For each letter a copy of its group, which is part of the group of the split. */
async function findSplitGroups(
  connection: Connection,
  letters: readonly FoundLetter[],
  { splitId, groupId, into }: NonNullable<RegroupLetters['split']>,
): Promise<(number | undefined)[]> {
  const sources = new Set(await listMembers(connection, [groupId]))
  const from = [...new Set(letters.map(({ letter }) => letter.groupId as number))].filter((id) =>
    sources.has(id),
  )
  const [queue] = await connection.query(readTarget, [into])
  if (from.length === 0 || queue === undefined) return letters.map(() => undefined)
  await lockGroups(connection, [readNumber(queue, 'queue_id')])
  // Read again under the lock: another server may have merged the group.
  const [target = queue] = await connection.query(readTarget, [into])
  const rows = await connection.query(readMembers, [encodeInt4s(from)])
  const ids = rows.map((row) => readNumber(row, 'id'))
  const fingerprints = rows.map((row) => toSplitFingerprint(splitId, readText(row, 'fingerprint')))
  const keys = [encodeInt4s(ids), encodeTexts(fingerprints)]
  await connection.query(copyGroups, [
    ...keys,
    readText(target, 'cause_key'),
    readNumber(target, 'shown_as'),
    null,
  ])
  const copies = new Map(
    (await connection.query(findCopies, keys)).map((row) => [
      readText(row, 'fingerprint'),
      readNumber(row, 'id'),
    ]),
  )
  const copyOf = new Map(ids.map((id, index) => [id, copies.get(fingerprints[index] ?? '')]))
  return letters.map(({ letter }) => copyOf.get(letter.groupId as number))
}

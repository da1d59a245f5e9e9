/**
 * Letters are sent: each becomes leased by its redrive, and its copy an item of the target. A thousand cost as
 * many statements as one: the bytes are copied inside the database.
 *
 * They are read without locks, because the partitions that they go to are locked before them. Who sends one that
 * was changed since sends nothing: the statement undoes itself, and all is done again.
 */
import { deadPartition } from '../../../core/dead-letter.ts'
import { later } from '../../../core/instant.ts'
import { isDue, noDeadline, queueOfOrigin, startRedrive, whyNotRedriven } from '../../../core/letter.ts'
import type { RedriveLetters, RedriveRefusal, RedriveResult } from '../../contract/letters.ts'
import { actOf, letterEntries } from '../../shared/audit-entries.ts'
import { insertEntries } from '../audit/audit.ts'
import { type Turns, takeTurns } from '../campaigns/send-progress.ts'
import { allOf } from '../connection/await-all.ts'
import type { Statement } from '../connection/connections.ts'
import { int4s, int8s, list, texts } from '../connection/encode-arrays.ts'
import { type ColumnName, encode, parametersOf, type Stored, sharedValues, valuesOf } from '../items/rows.ts'
import type { QueueRow } from '../queues/queues.ts'
import type { Transaction } from '../transaction.ts'
import { keepEdit } from './edits.ts'
import { type HeldLetter, isId, whyNotThere } from './letter-rows.ts'
import { type SeenLetter, see } from './letter-snapshots.ts'

type Asked = RedriveLetters['letters'][number]
type Sending = Readonly<{ asked: Asked; seen: SeenLetter; target: QueueRow; partition: number; at: number }>

/** Named by others as theirs, or with letters now or before: those have groups, which stay as long as their queue. */
const findDeadQueues: Statement = {
  name: 'dead-queues-among',
  text: `select w.name from unnest($1::text[]) as w(name)
    where exists (select from redrive.queues u where u.dead_queue = w.name)
      or (select g.id from redrive.queues q cross join lateral (
            select f.id from redrive.groups f where f.queue_id = q.id limit 1) g
          where q.name = w.name) is not null`,
}

const findEdits: Statement = {
  name: 'find-edits',
  text: `select e.letter_id, e.number from unnest($1::text[], $2::int4[]) as w(letter_id, number)
    cross join lateral (
      select f.letter_id, f.number from redrive.letter_edits f
      where f.letter_id = w.letter_id and f.number = w.number offset 0) e`,
}

/** Of a letter that is sent, and of each the same. */
const sentColumns: readonly ColumnName[] = [
  'state',
  'updated_at',
  'available_at',
  'lease_holder',
  'lease_deadline',
  'ended_at',
  'redrive_at',
]
const ownColumns: readonly ColumnName[] = ['uuid', 'letter', 'due_at']
const sentFirst = 14
/** `$13`: now. A place that is another row's by now, or another version's, is none of theirs. */
export const sendLetters: Statement = {
  name: 'send-letters',
  text: `with sent as (
      update redrive.items_sourced t set letter = m.letter, due_at = m.due_at,
        (${sentColumns.join(', ')}) = row(${valuesOf(sentColumns, sentFirst)})
      from unnest($1::tid[], $2::xid[], ${parametersOf(ownColumns, 3)},
          $6::int4[], $7::int4[], $8::text[], $9::text[], $10::int4[], $11::int8[], $12::int4[])
        as m(place, version, ${ownColumns.join(', ')}, queue_id, partition, id, letter_id, redrives, expire_deadline, edit)
      where t.ctid = m.place and t.xmin = m.version and t.uuid = m.uuid
      returning m.queue_id, m.partition, m.id, m.letter_id, m.redrives, m.expire_deadline, m.edit,
        t.priority, t.kind, t.encoding, t.reference, t.headers, t.key, t.payload
    ), copied as (
      insert into redrive.items_live (queue_id, partition, id, letter_id, redrives, created_at, updated_at,
        expire_deadline, due_at, attempts, attempts_max, state, is_sourced, priority, kind, encoding, reference,
        headers, key, payload)
      select s.queue_id, s.partition, s.id, s.letter_id, s.redrives, $13::int8, $13::int8, s.expire_deadline,
        s.expire_deadline, 0, 0, 0, false, s.priority, s.kind, s.encoding, s.reference,
        case when s.edit is null then s.headers else e.headers end,
        case when s.edit is null then s.key else e.key end,
        case when s.edit is null then s.payload else e.payload end
      from sent s left join lateral (
        select f.headers, f.key, f.payload from redrive.letter_edits f
        where s.edit is not null and f.letter_id = s.letter_id and f.number = s.edit offset 0) e on true
    )
    select redrive.expect_rows((select count(*) from sent), cardinality($1::tid[]))`,
}
/** While the database sends these, those after them are worked on here. */
const atOnce = 250
/** The first ones are fewer: until they are on their way the database has nothing to do. */
const sentFirstAtOnce = 80

export async function redriveLetters(
  transaction: Transaction,
  command: RedriveLetters,
): Promise<RedriveResult[]> {
  const { letters, now } = command
  // Who works on a campaign has it locked already: its turns can be asked for before any partition is locked.
  const isGoing = (letter: HeldLetter) => whyNot(command, letter) === undefined
  const letterIds = letters.map(({ letterId }) => letterId)
  const [seen, turns] = await allOf([see(transaction, letterIds, isGoing), takeTurns(transaction, command)])
  const targetOf = await lockTargets(transaction, letters, seen)
  const hasEdit = await editsOf(transaction, letters)
  const whyGone = await whyNotThere(transaction, letterIds, seen)

  const going = new Set<string>()
  const results: (RedriveResult | undefined)[] = []
  const sendings: Sending[] = []
  for (const [at, asked] of letters.entries()) {
    const { letterId, campaign } = asked
    const found = seen.get(letterId)
    const target = targetOf(asked)
    const why =
      found === undefined
        ? whyGone(letterId)
        : ((going.has(letterId) ? 'redriving' : whyNot(command, found)) ??
          turns.whyNot(campaign) ??
          whyNotTo(found, target) ??
          (hasEdit(asked) ? undefined : 'no-edit'))
    if (found === undefined || typeof target === 'string' || why !== undefined) {
      turns.skip(campaign, why ?? 'missing')
      results[at] = { letterId, isStarted: false, why: why ?? 'missing' }
      continue
    }
    going.add(letterId)
    const partition = deadPartition(found.item.origin?.partition ?? 0, target.queue)
    sendings.push({ asked, seen: found, target, partition, at })
  }
  const nextId = idsFor(transaction, sendings, now)
  // Who changes several letters does it in the order of their UUIDs, so that none wait for each other in a circle.
  const named = sendings.map((sending) => ({ sending, id: nextId(sending) })).sort(byLetter)
  const sorted = await withEdits(transaction, command, named)
  const sent: Promise<unknown>[] = []
  for (let from = 0, until = sentFirstAtOnce; from < sorted.length; from = until, until += atOnce) {
    sent.push(send(transaction, command, sorted.slice(from, until), turns, results))
  }
  const acts = command.trace === undefined ? [] : (results as RedriveResult[]).map(actOf)
  const entries = letterEntries(command.trace, acts)
  await allOf([...sent, turns.write(), insertEntries(transaction.connection, entries)])
  return results as RedriveResult[]
}

type Named = Readonly<{ sending: Sending; id: string; edit?: number | null }>

/** With the edited version that each is sent as; a new one is kept now. If the letter does not go after all, all is undone. */
async function withEdits(
  transaction: Transaction,
  { actor, now, trace }: RedriveLetters,
  named: readonly Named[],
): Promise<readonly Named[]> {
  const edited: Named[] = []
  for (const each of named) {
    const { edit = null, letterId } = each.sending.asked
    if (edit === null) edited.push(each)
    else if (typeof edit === 'number') edited.push({ ...each, edit })
    else {
      const kept = { letterId, ...edit, actor, now, ...(trace && { trace }) }
      edited.push({ ...each, edit: await keepEdit(transaction, kept) })
    }
  }
  return edited
}

/** KSUIDs are in the order of their UUIDs. */
function byLetter({ sending: left }: Named, { sending: right }: Named): number {
  return left.asked.letterId < right.asked.letterId ? -1 : 1
}

function send(
  transaction: Transaction,
  { now, actor }: RedriveLetters,
  some: readonly Named[],
  turns: Turns,
  results: (RedriveResult | undefined)[],
): Promise<unknown> {
  const rows: Stored[] = []
  const numbers: number[] = []
  for (const { sending, id, edit = null } of some) {
    const { asked, seen, target, partition, at } = sending
    const { queueRow, item: before } = seen
    const { letterId, campaign = null } = asked
    const queue = target.queue.name
    const to = { kind: 'queue', name: queue, partition, id } as const
    const item = startRedrive(before, { at: now, deadline: noDeadline, actor, campaign, target: to, edit })
    const number = item.letter?.redrives[0]?.number ?? 1
    rows.push({ queueId: queueRow.id, queue: queueRow.queue, item })
    numbers.push(number)
    transaction.tally.leave(queueRow.id, before)
    transaction.tally.enter(queueRow.id, item)
    transaction.tally.addWaiting(target.id, partition, now)
    turns.send(campaign)
    const result = { letterId, isStarted: true, queue, partition, id, number } as const
    results[at] = edit === null ? result : { ...result, edit }
  }
  const alike = sharedValues(sentColumns, rows)
  if (alike === undefined) throw new Error('letters that are sent differ in what is the same for all')
  return transaction.connection.query(sendLetters, [
    list(some.map(({ sending }) => sending.seen.place)),
    list(some.map(({ sending }) => sending.seen.version)),
    ...encode(ownColumns, rows),
    int4s(some.map(({ sending }) => sending.target.id)),
    int4s(some.map(({ sending }) => sending.partition)),
    texts(some.map(({ id }) => id)),
    texts(some.map(({ sending }) => sending.asked.letterId)),
    int4s(numbers),
    int8s(some.map(({ sending }) => later(now, sending.target.queue.expireUs))),
    int4s(some.map(({ edit }) => edit ?? null)),
    now,
    ...alike,
  ])
}

function whyNot(command: RedriveLetters, { queueRow, item }: HeldLetter): RedriveRefusal | undefined {
  const { redrive } = queueRow.queue
  const why = whyNotRedriven(item, command, redrive)
  if (why !== undefined || command.isDueOnly !== true) return why
  return isDue(item, redrive, command.now) ? undefined : 'not-due'
}

type Target = QueueRow | 'no-target' | 'dead-target'

function whyNotTo(found: HeldLetter, target: Target): RedriveRefusal | undefined {
  if (typeof target === 'string') return target
  return target.id === found.queueRow.id ? 'dead-target' : undefined
}

/** The queues that the letters go to, with the partitions locked that they go to. */
async function lockTargets(
  transaction: Transaction,
  letters: readonly Asked[],
  seen: ReadonlyMap<string, SeenLetter>,
): Promise<(asked: Asked) => Target> {
  const nameOf = ({ queue, letterId }: Asked): string | undefined =>
    queue ?? queueOfOrigin(seen.get(letterId)?.item.origin ?? null) ?? undefined
  const names = [...new Set(letters.map(nameOf))].filter(
    (name) => name !== undefined && isText(name),
  ) as string[]
  const unknown = names.filter((name) => transaction.peek(name) === undefined)
  await transaction.load(unknown)
  const targets = new Map<string, Target>()
  for (const name of names) targets.set(name, transaction.peek(name) ?? 'no-target')
  if (names.length > 0) {
    const dead = await transaction.connection.query(findDeadQueues, [texts(names)])
    for (const row of dead) targets.set(row.name as string, 'dead-target')
  }
  const targetOf = (asked: Asked): Target => targets.get(nameOf(asked) ?? '') ?? 'no-target'
  const places = new Map<string, { queueRow: QueueRow; partition: number }>()
  for (const asked of letters) {
    const queueRow = targetOf(asked)
    const origin = seen.get(asked.letterId)?.item.origin
    if (typeof queueRow === 'string' || origin === undefined || origin === null) continue
    const partition = deadPartition(origin.partition ?? 0, queueRow.queue)
    places.set(`${queueRow.id}/${partition}`, { queueRow, partition })
  }
  await transaction.lockPartitions([...places.values()])
  return targetOf
}

function isText(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}

async function editsOf(
  transaction: Transaction,
  letters: readonly Asked[],
): Promise<(asked: Asked) => boolean> {
  const edited = letters.flatMap(({ edit, letterId }) =>
    typeof edit === 'number' && isId(letterId) ? [{ edit, letterId }] : [],
  )
  if (edited.length === 0) return ({ edit }) => typeof edit !== 'number'
  const rows = await transaction.connection.query(findEdits, [
    texts(edited.map(({ letterId }) => letterId)),
    int4s(edited.map(({ edit }) => edit)),
  ])
  const there = new Set(rows.map((row) => `${row.number}/${row.letter_id}`))
  return ({ edit, letterId }) => typeof edit !== 'number' || there.has(`${edit}/${letterId}`)
}

/** Ids in the order of the letters, made in one go for each partition. */
function idsFor(
  transaction: Transaction,
  sendings: readonly Sending[],
  now: number,
): (sending: Sending) => string {
  const keyOf = ({ target, partition }: Sending) => `${target.id}/${partition}`
  const counts = new Map<string, { sending: Sending; count: number }>()
  for (const sending of sendings) {
    const place = counts.get(keyOf(sending))
    if (place === undefined) counts.set(keyOf(sending), { sending, count: 1 })
    else place.count++
  }
  const ids = new Map<string, Iterator<string>>()
  for (const [key, { sending, count }] of counts) {
    ids.set(key, transaction.nextIds(sending.target, sending.partition, now, count).values())
  }
  return (sending) => ids.get(keyOf(sending))?.next().value as string
}

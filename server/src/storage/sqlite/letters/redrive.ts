import { deadPartition } from '../../../core/dead-letter.ts'
import { later } from '../../../core/instant.ts'
import type { Leased, RedriveRecord } from '../../../core/item.ts'
import { isDue, noDeadline, queueOfOrigin, startRedrive, whyNotRedriven } from '../../../core/letter.ts'
import type { RedriveLetters, RedriveRefusal, RedriveResult } from '../../contract/letters.ts'
import { actOf, letterEntries } from '../../shared/audit-entries.ts'
import { producedItem } from '../../shared/new-item.ts'
import { insertAudit } from '../audit/audit.ts'
import { type Turns, takeTurns } from '../campaigns/send-progress.ts'
import type { Bound, Database } from '../connection/database.ts'
import { rewrite } from '../items/items.ts'
import { factsToText, itemColumnList, itemColumns, itemValues, stateCodes } from '../items/rows.ts'
import { namedAsDeadQueueBy, type QueueRow } from '../queues/queues.ts'
import type { Transaction } from '../transaction.ts'
import { keepEdit } from './edits.ts'
import { type FoundLetter, findToSend, whyNotThere } from './redrive-ends.ts'

type Given = RedriveLetters['letters'][number]
type Sending = Readonly<{ found: FoundLetter; target: QueueRow; partition: number }>

/** First what becomes of each is decided, then the ids of those that go are made at once. */
export function redrive(transaction: Transaction, command: RedriveLetters): RedriveResult[] {
  const targetOf = targetsOf(transaction)
  const turns = takeTurns(transaction, command)
  const going = new Set<string>()
  const decided = command.letters.map((given): Sending | RedriveRefusal => {
    const decision = decide(transaction, command, given, targetOf, turns)
    if (typeof decision === 'string') return decision
    if (going.has(given.letterId)) return 'redriving'
    going.add(given.letterId)
    return decision
  })
  const nextId = idsFor(transaction, command, decided)
  const redriven = command.letters.map((given, index): RedriveResult => {
    const decision = decided[index] as Sending | RedriveRefusal
    const { letterId, campaign } = given
    if (typeof decision === 'string') {
      turns.skip(campaign, decision)
      return { letterId, isStarted: false, why: decision }
    }
    const { target, partition } = decision
    const id = nextId(decision)
    const edit = editOf(transaction, command, given)
    const number = send(transaction, command, given, edit, decision, id)
    turns.send(campaign)
    const sent = { letterId, isStarted: true, queue: target.queue.name, partition, id, number } as const
    return edit === null ? sent : { ...sent, edit }
  })
  turns.moveOn()
  insertAudit(transaction.database, letterEntries(command.trace, redriven.map(actOf)))
  return redriven
}

function decide(
  transaction: Transaction,
  command: RedriveLetters,
  given: Given,
  targetOf: (name: string) => QueueRow | RedriveRefusal,
  turns: Turns,
): Sending | RedriveRefusal {
  const found = findToSend(transaction, given.letterId)
  if (found === undefined) return whyNotThere(transaction, given.letterId)
  const { letter } = found
  const why = whyNotRedriven(letter, command, found.queueRow.queue.redrive)
  if (why !== undefined) return why
  if (command.isDueOnly && !isDue(letter, found.queueRow.queue.redrive, command.now)) return 'not-due'
  const had = turns.whyNot(given.campaign)
  if (had !== undefined) return had

  const name = given.queue ?? queueOfOrigin(letter.origin)
  if (name === null) return 'no-target'
  const target = name === letter.queue ? 'dead-target' : targetOf(name)
  if (typeof target === 'string') return target
  if (typeof given.edit === 'number' && !hasEdit(transaction, given.letterId, given.edit)) return 'no-edit'
  return { found, target, partition: deadPartition(letter.origin?.partition ?? 0, target.queue) }
}

/** Looked up once each: a list of letters has few targets. */
function targetsOf({ database, queueCache }: Transaction): (name: string) => QueueRow | RedriveRefusal {
  const targets = new Map<string, QueueRow | RedriveRefusal>()
  return (name) => {
    const before = targets.get(name)
    if (before !== undefined) return before
    const queueRow = queueCache.find(name) ?? 'no-target'
    const isDead =
      namedAsDeadQueueBy(database, name) !== undefined ||
      (queueRow !== 'no-target' && hadLetters(database, queueRow))
    const target = isDead ? 'dead-target' : queueRow
    targets.set(name, target)
    return target
  }
}

/** The edited version that is sent; a new one is kept now, since the letter goes. */
function editOf(transaction: Transaction, command: RedriveLetters, given: Given): number | null {
  const { edit = null, letterId } = given
  if (edit === null || typeof edit === 'number') return edit
  const { actor, now, trace } = command
  return keepEdit(transaction, { letterId, ...edit, actor, now, ...(trace && { trace }) })
}

/** Letters have groups, nothing else has, and those stay as long as their queue. */
function hadLetters(database: Database, { id }: QueueRow): boolean {
  return database.array('select 1 from groups where queue_id = ? limit 1', id) !== undefined
}

function hasEdit({ database }: Transaction, letterId: string, number: number): boolean {
  const sql = 'select 1 from letter_edits where letter_id = ? and number = ?'
  return database.array(sql, letterId, number) !== undefined
}

/** Ids in the order of the letters, made in one go for each partition. */
function idsFor(
  { queueCache, tally }: Transaction,
  command: RedriveLetters,
  decided: readonly (Sending | RedriveRefusal)[],
): (sending: Sending) => string {
  const places = new Map<string, { sending: Sending; count: number }>()
  const keyOf = ({ target, partition }: Sending) => `${target.id}/${partition}`
  for (const sending of decided) {
    if (typeof sending === 'string') continue
    const place = places.get(keyOf(sending))
    if (place === undefined) places.set(keyOf(sending), { sending, count: 1 })
    else place.count++
  }
  const ids = new Map<string, Iterator<string>>()
  for (const [key, { sending, count }] of places) {
    const made = queueCache.nextIds(sending.target, sending.partition, command.now, count, tally)
    ids.set(key, made.values())
  }
  return (sending) => ids.get(keyOf(sending))?.next().value as string
}

/**
 * What the copy has of its own is bound; its bytes are copied where they are. Each by itself: what is selected from the table that
 * it goes into is put aside first, and that costs more.
 */
const copyLetterSql = `insert into items (queue_id, partition, id, root_id, state, attempts, attempts_max, priority, kind,
    encoding, reference, created_at, updated_at, expire_deadline, due_at, letter_id, redrives, key, headers, payload)
  values (?1, ?2, ?3, ?3, 0, 0, 0, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?9, ?10, ?11, (select key from items where rowid = ?12),
    (select headers from items where rowid = ?12), (select payload from items where rowid = ?12))`
const bytes: readonly string[] = ['key', 'headers', 'payload']
const copied = itemColumns.map((column) => (bytes.includes(column) ? column : '?')).join(', ')
const copyEditSql = `insert into items (${itemColumnList})
  select ${copied} from letter_edits where letter_id = ? and number = ?`
const ownPlaces = itemColumns.flatMap((column, place) => (bytes.includes(column) ? [] : [place]))

function send(
  transaction: Transaction,
  command: RedriveLetters,
  given: Given,
  edit: number | null,
  sending: Sending,
  id: string,
): number {
  const { found, target, partition } = sending
  const record: Pick<RedriveRecord, 'actor' | 'campaign' | 'target' | 'edit'> = {
    actor: command.actor,
    campaign: given.campaign ?? null,
    target: { kind: 'queue', name: target.queue.name, partition, id },
    edit,
  }
  const sent = startRedrive(found.letter, { ...record, at: command.now, deadline: noDeadline })
  const number = sent.letter?.redrives[0]?.number ?? 1
  if (edit === null) copyLetter(transaction, command, sending, id, number)
  else copyEdit(transaction, command, sending, id, number, edit)
  transaction.tally.add(target.id, partition, 'accepted')
  markSent(transaction, found, sent)
  return number
}

function copyLetter(
  { database, tally }: Transaction,
  { now }: RedriveLetters,
  { found: { letter, rowid }, target, partition }: Sending,
  id: string,
  number: number,
): void {
  database.run(
    copyLetterSql,
    target.id,
    partition,
    id,
    letter.priority,
    letter.kind,
    letter.encoding,
    letter.reference,
    now,
    later(now, target.queue.expireUs),
    letter.rootId,
    number,
    rowid,
  )
  tally.addWaiting(target.id, partition, now, 1)
}

function copyEdit(
  { database, tally }: Transaction,
  { now }: RedriveLetters,
  { found: { letter }, target, partition }: Sending,
  id: string,
  number: number,
  edit: number,
): void {
  const { kind, encoding, reference, priority, rootId, payload } = letter
  const item = { payload, kind, encoding, reference, priority, letterId: rootId, redrives: number }
  const command = { op: 'produce', queue: target.queue.name, partition, items: [item], now } as const
  const copy = producedItem(command, 0, target.queue, id)
  const values = itemValues(target, copy)
  const own = ownPlaces.map((place): Bound => values[place] ?? null)
  database.run(copyEditSql, ...own, rootId, edit)
  tally.enter(target.id, copy)
}

/** SQLite writes the entries of every index that names a column of an update: so no more are named than change. */
const sentSql = `update items set state = ${stateCodes.leased}, letter_state = ${stateCodes.leased}, updated_at = ?,
    lease_holder = ?, lease_deadline = ?, letter = ? where rowid = ?`

function markSent(transaction: Transaction, { queueRow, letter, rowid }: FoundLetter, sent: Leased): void {
  const isPlain = letter.state === 'waiting' && letter.availableAt === null && !letter.letter?.nextRedriveAt
  if (!isPlain) {
    rewrite(transaction, queueRow, letter, sent)
    return
  }
  const { database, tally } = transaction
  const { holder, deadline } = sent.lease
  database.run(sentSql, sent.updatedAt, holder, deadline, sent.letter && factsToText(sent.letter), rowid)
  tally.leave(queueRow.id, letter)
  tally.enter(queueRow.id, sent)
}

/**
 * Redrives letters: each letter becomes leased by its redrive, and its copy becomes an item of the target
 * queue. The bytes are copied inside the database.
 */

import { noDeadline, startRedrive } from '../../../core/dead-letters/letter.ts'
import {
  decideRedrives,
  type RedriveLookups,
  type RedrivePlan,
} from '../../../core/dead-letters/letter-decisions.ts'
import type { LeasedHead, RedriveRecord } from '../../../core/items/item.ts'
import { addDuration } from '../../../core/time/instant.ts'
import type { RedriveLetters, RedriveRefusal, RedriveResult } from '../../contract/letters.ts'
import { createLetterEntries, toOutcome } from '../../shared/audit/audit-entries.ts'
import { encodeFacts } from '../../shared/items/item-row.ts'
import { createProducedItem } from '../../shared/items/new-item.ts'
import { insertAudit } from '../audit/audit.ts'
import { type SendProgress, trackSendProgress } from '../campaigns/send-progress.ts'
import type { Bound, Database } from '../connection/database.ts'
import { itemColumnList, itemColumns, stateCodes, toItemValues } from '../items/rows.ts'
import { rewriteRow } from '../items/write-rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import { findDeadQueueUser } from '../queues/queues.ts'
import type { Transaction } from '../transaction.ts'
import { insertEdit } from './edits.ts'
import { recordLetterIds } from './letter-ids.ts'
import { type FoundLetter, findToDecide, locateMissing } from './letter-rows.ts'

type Request = RedriveLetters['letters'][number]
type Plan = RedrivePlan<Request, FoundLetter, QueueRow>

/** Decides about all letters first, so that the ids of the sent items can be created in one go. */
export function redriveLetters(transaction: Transaction, command: RedriveLetters): RedriveResult[] {
  const progress = trackSendProgress(transaction, command)
  const decisions = decideRedrives(command.letters, command, createLookups(transaction, command, progress))
  const nextId = createIds(transaction, command, decisions)
  const results = command.letters.map(({ letterId, campaign }, index): RedriveResult => {
    const plan = decisions[index] as Plan | RedriveRefusal
    if (typeof plan === 'string') {
      progress.skip(campaign, plan)
      return { letterId, isStarted: false, refusal: plan }
    }
    const { target, partition } = plan
    const id = nextId(plan)
    const edit = insertRequestedEdit(transaction, command, plan.request)
    const number = send(transaction, command, plan, edit, id)
    recordLetterIds(transaction.database, [{ letterId, id }])
    progress.send(campaign)
    const sent = { letterId, isStarted: true, queue: target.queue.name, partition, id, number } as const
    return edit === null ? sent : { ...sent, edit }
  })
  progress.write()
  insertAudit(transaction.database, createLetterEntries(command.audit, results.map(toOutcome)))
  return results
}

function createLookups(
  transaction: Transaction,
  command: RedriveLetters,
  progress: SendProgress,
): RedriveLookups<Request, FoundLetter, QueueRow> {
  return {
    findLetter: ({ letterId }) => findToDecide(transaction, letterId) ?? locateMissing(transaction, letterId),
    findCampaignRefusal: ({ campaign }) => progress.findRefusal(campaign),
    findTarget: createTargetFinder(transaction, command),
    hasEdit: ({ letterId, edit }) => typeof edit !== 'number' || hasEdit(transaction, letterId, edit),
  }
}

type Target = QueueRow | 'no-target' | 'dead-target'

/** Looks up each target queue once: the letters of a command have few targets. */
function createTargetFinder(
  { database, queueCache }: Transaction,
  { targetNamespaces }: RedriveLetters,
): (name: string) => Target {
  const targets = new Map<string, Target>()
  return (name) => {
    const before = targets.get(name)
    if (before !== undefined) return before
    const queueRow = queueCache.find(name)
    if (queueRow !== undefined && targetNamespaces?.includes(queueRow.queue.namespace) === false)
      return 'no-target'
    const isDead =
      findDeadQueueUser(database, name) !== undefined ||
      (queueRow !== undefined && hadLetters(database, queueRow))
    const target = isDead ? 'dead-target' : (queueRow ?? 'no-target')
    targets.set(name, target)
    return target
  }
}

/**
 * The number of the edited version to send. A new edited version is stored now, because its letter is
 * redriven.
 */
function insertRequestedEdit(
  transaction: Transaction,
  command: RedriveLetters,
  { edit = null, letterId }: Request,
): number | null {
  if (edit === null || typeof edit === 'number') return edit
  const { actor, now, audit } = command
  return insertEdit(transaction, { letterId, ...edit, actor, now, ...(audit && { audit }) })
}

/** Only letters have groups, and groups stay as long as their queue. */
function hadLetters(database: Database, { id }: QueueRow): boolean {
  return database.getArray('select 1 from groups where queue_id = ? limit 1', id) !== undefined
}

function hasEdit({ database }: Transaction, letterId: string, number: number): boolean {
  const sql = 'select 1 from letter_edits where letter_id = ? and number = ?'
  return database.getArray(sql, letterId, number) !== undefined
}

/** Creates the ids of each partition in one go, in the order of the letters. */
function createIds(
  { queueCache, countChanges }: Transaction,
  { now }: RedriveLetters,
  decisions: readonly (Plan | RedriveRefusal)[],
): (plan: Plan) => string {
  const partitions = new Map<string, { plan: Plan; count: number }>()
  const toPartitionKey = ({ target, partition }: Plan) => `${target.id}/${partition}`
  for (const plan of decisions) {
    if (typeof plan === 'string') continue
    const counted = partitions.get(toPartitionKey(plan))
    if (counted === undefined) partitions.set(toPartitionKey(plan), { plan, count: 1 })
    else counted.count++
  }
  const ids = new Map<string, Iterator<string>>()
  for (const [key, { plan, count }] of partitions) {
    ids.set(key, queueCache.allocateIds(plan.target, plan.partition, now, count, countChanges).values())
  }
  return (plan) => ids.get(toPartitionKey(plan))?.next().value as string
}

/**
 * Binds the columns that the copy has of its own and copies the bytes inside the database. Each column of
 * bytes is a subquery: with `insert ... select` from the same table SQLite copies the row to a temporary
 * table first.
 */
const copyLetterSql = `insert into items (queue_id, partition, id, root_id, state, attempts, attempts_max, priority, kind,
    encoding, reference, created_at, updated_at, expire_deadline, due_at, letter_id, redrives, key, headers, payload)
  values (?1, ?2, ?3, ?3, 0, 0, 0, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?9, ?10, ?11, (select key from items where rowid = ?12),
    (select headers from items where rowid = ?12), (select payload from items where rowid = ?12))`
const byteColumns: readonly string[] = ['key', 'headers', 'payload']
const copiedColumns = itemColumns.map((column) => (byteColumns.includes(column) ? column : '?')).join(', ')
const copyEditSql = `insert into items (${itemColumnList})
  select ${copiedColumns} from letter_edits where letter_id = ? and number = ?`
const ownPositions = itemColumns.flatMap((column, index) => (byteColumns.includes(column) ? [] : [index]))

function send(
  transaction: Transaction,
  command: RedriveLetters,
  plan: Plan,
  edit: number | null,
  id: string,
): number {
  const { request, found, target, partition } = plan
  const record: Pick<RedriveRecord, 'actor' | 'campaign' | 'target' | 'edit'> = {
    actor: command.actor,
    campaign: request.campaign ?? null,
    target: { kind: 'queue', name: target.queue.name, partition, id },
    edit,
  }
  const sent = startRedrive(found.letter, { ...record, at: command.now, deadline: noDeadline })
  const number = sent.letter?.redrives[0]?.number ?? 1
  if (edit === null) copyLetter(transaction, command, plan, id, number)
  else copyEdit(transaction, command, plan, id, number, edit)
  transaction.countChanges.add(target.id, partition, 'accepted')
  markSent(transaction, found, sent)
  return number
}

function copyLetter(
  { database, countChanges }: Transaction,
  { now }: RedriveLetters,
  { found: { letter, rowid }, target, partition }: Plan,
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
    addDuration(now, target.queue.expireTimeoutUs),
    letter.rootId,
    number,
    rowid,
  )
  countChanges.addWaiting(target.id, partition, now, 1)
}

const noBytes = new Uint8Array()

function copyEdit(
  { database, countChanges }: Transaction,
  { now }: RedriveLetters,
  { found: { letter }, target, partition }: Plan,
  id: string,
  number: number,
  edit: number,
): void {
  const { kind, encoding, reference, priority, rootId } = letter
  // The bytes are copied from the edited version.
  const item = { payload: noBytes, kind, encoding, reference, priority, letterId: rootId, retryCount: number }
  const command = { op: 'produce', queue: target.queue.name, partition, items: [item], now } as const
  const copy = createProducedItem(command, 0, target.queue, id)
  const values = toItemValues(target, copy)
  const own = ownPositions.map((index): Bound => values[index] ?? null)
  database.run(copyEditSql, ...own, rootId, edit)
  countChanges.enter(target.id, copy)
}

/**
 * Names only the columns that change: SQLite rewrites the entries of every index that has a column of the
 * update.
 */
const sentSql = `update items set state = ${stateCodes.leased}, letter_state = ${stateCodes.leased}, updated_at = ?,
    lease_holder = ?, lease_deadline = ?, letter = ? where rowid = ?`

function markSent(
  transaction: Transaction,
  { queueRow, letter, rowid }: FoundLetter,
  sent: LeasedHead,
): void {
  const isPlain = letter.state === 'waiting' && letter.availableAt === null && !letter.letter?.nextRedriveAt
  if (!isPlain) {
    rewriteRow(transaction, queueRow, letter, sent)
    return
  }
  const { database, countChanges } = transaction
  const { holder, deadline } = sent.lease
  database.run(sentSql, sent.updatedAt, holder, deadline, sent.letter && encodeFacts(sent.letter), rowid)
  countChanges.leave(queueRow.id, letter)
  countChanges.enter(queueRow.id, sent)
}

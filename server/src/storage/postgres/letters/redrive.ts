/**
 * Redrives letters: each letter becomes leased by its redrive, and its copy becomes an item of the target
 * queue. The bytes are copied inside the database, so that a thousand letters need as few statements as one.
 *
 * Letters are read without locks, because the partitions that they go to must be locked before them. If a
 * letter changed since it was read, the statement that sends it fails, and the transaction is rolled back and
 * run again.
 */
import { mapPartition } from '../../../core/dead-letters/dead-letter.ts'
import { noDeadline, startRedrive } from '../../../core/dead-letters/letter.ts'
import {
  chooseTarget,
  decideRedrives,
  findCommandRefusal,
  type RedriveLookups,
  type RedrivePlan,
} from '../../../core/dead-letters/letter-decisions.ts'
import { isStorableText } from '../../../core/text/storable-text.ts'
import { addDuration } from '../../../core/time/instant.ts'
import type { RedriveLetters, RedriveResult } from '../../contract/letters.ts'
import { createLetterEntries, toOutcome } from '../../shared/audit/audit-entries.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import { insertAudit } from '../audit/audit.ts'
import { type SendProgress, trackSendProgress } from '../campaigns/send-progress.ts'
import { awaitAll } from '../connection/await-all.ts'
import type { Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeInt8s, encodeTexts, list } from '../connection/encode-arrays.ts'
import {
  encode,
  getSharedValues,
  type HeadColumnName,
  printArrayParameters,
  printValueParameters,
  type StoredHead,
} from '../items/rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { PartitionRef, Transaction } from '../transaction.ts'
import { insertEdit } from './edits.ts'
import { type FoundLetter, isKsuid, locateMissing } from './letter-rows.ts'
import { type LetterSnapshot, readSnapshots } from './letter-snapshots.ts'

type Request = RedriveLetters['letters'][number]
/** `index`: the position of the letter in the command. */
type Plan = RedrivePlan<Request, LetterSnapshot, QueueRow> & Readonly<{ index: number }>
type Facts = Readonly<{ lookups: RedriveLookups<Request, LetterSnapshot, QueueRow>; progress: SendProgress }>

/**
 * Queues that are the dead queue of another queue, or hold or ever held letters. Only letters have groups,
 * and groups stay as long as their queue.
 */
const findDeadQueues: Statement = {
  name: 'find-dead-queues',
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

/** The columns that get the same value in every letter of a statement. */
const sharedColumns: readonly HeadColumnName[] = [
  'state',
  'updated_at',
  'available_at',
  'lease_holder',
  'lease_deadline',
  'ended_at',
  'redrive_at',
]
const ownColumns: readonly HeadColumnName[] = ['uuid', 'letter', 'due_at']
const firstSharedParameter = 14
/** `$13`: now. Changes no row if the location holds another row or another version of the letter by now. */
export const sendLetters: Statement = {
  name: 'send-letters',
  text: `with sent as (
      update redrive.items_sourced t set letter = m.letter, due_at = m.due_at,
        (${sharedColumns.join(', ')}) = row(${printValueParameters(sharedColumns, firstSharedParameter)})
      from unnest($1::tid[], $2::xid[], ${printArrayParameters(ownColumns, 3)},
          $6::int4[], $7::int4[], $8::text[], $9::text[], $10::int4[], $11::int8[], $12::int4[])
        as m(location, version, ${ownColumns.join(', ')}, queue_id, partition, id, letter_id, redrives, expire_deadline, edit)
      where t.ctid = m.location and t.xmin = m.version and t.uuid = m.uuid
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
    ), named as (
      insert into redrive.letter_ids (letter_id, id) select s.letter_id, s.id from sent s on conflict do nothing
    )
    select redrive.expect_rows((select count(*) from sent), cardinality($1::tid[]))`,
}
/** Letters per statement. While the database executes one statement, the next is encoded here. */
const lettersPerStatement = 250
/** The first statement has fewer letters: the database has nothing to do until it arrives. */
const lettersInFirstStatement = 80

export async function redriveLetters(
  transaction: Transaction,
  command: RedriveLetters,
): Promise<RedriveResult[]> {
  const { letters, now } = command
  const { lookups, progress } = await loadFacts(transaction, command)
  const results: (RedriveResult | undefined)[] = []
  const plans: Plan[] = []
  for (const [index, decision] of decideRedrives(letters, command, lookups).entries()) {
    if (typeof decision !== 'string') plans.push({ ...decision, index })
    else {
      const { letterId, campaign } = letters[index] as Request
      progress.skip(campaign, decision)
      results[index] = { letterId, isStarted: false, refusal: decision }
    }
  }
  const nextId = createIds(transaction, plans, now)
  // Writers change several letters in the order of their UUIDs, so that they cannot wait for each other in a
  // circle.
  const identified = plans.map((plan) => ({ plan, id: nextId(plan) })).sort(compareByLetter)
  const sendings = await insertRequestedEdits(transaction, command, identified)
  const sent: Promise<unknown>[] = []
  for (let start = 0, end = lettersInFirstStatement; start < sendings.length; ) {
    sent.push(send(transaction, command, sendings.slice(start, end), progress, results))
    start = end
    end += lettersPerStatement
  }
  const outcomes = command.audit === undefined ? [] : (results as RedriveResult[]).map(toOutcome)
  const entries = createLetterEntries(command.audit, outcomes)
  await awaitAll([...sent, progress.write(), insertAudit(transaction.connection, entries)])
  return results as RedriveResult[]
}

/** Reads all facts that the decisions need, and locks the partitions that the letters go to. */
async function loadFacts(transaction: Transaction, command: RedriveLetters): Promise<Facts> {
  const { letters } = command
  const isSendable = ({ queueRow, letter }: FoundLetter) =>
    findCommandRefusal(letter, command, queueRow.queue.redrive) === undefined
  const letterIds = letters.map(({ letterId }) => letterId)
  // The sender of a campaign has locked it already, so its progress can be read before any partition is
  // locked.
  const [snapshots, progress] = await awaitAll([
    readSnapshots(transaction, letterIds, isSendable),
    trackSendProgress(transaction, command),
  ])
  const targets = await lockTargets(transaction, command, snapshots)
  const hasEdit = await findExistingEdits(transaction, letters)
  const locate = await locateMissing(transaction, letterIds, snapshots)
  return {
    progress,
    lookups: {
      findLetter: ({ letterId }) => snapshots.get(letterId) ?? locate(letterId),
      findCampaignRefusal: ({ campaign }) => progress.findRefusal(campaign),
      findTarget: (name) => targets.get(name) ?? 'no-target',
      hasEdit,
    },
  }
}

type Identified = Readonly<{ plan: Plan; id: string }>
/** `edit`: the number of the edited version to send; null: the letter as it is. */
type Sending = Identified & Readonly<{ edit: number | null }>

/** Stores the new edited versions. If a letter is not sent in the end, the transaction is rolled back. */
async function insertRequestedEdits(
  transaction: Transaction,
  { actor, now, audit }: RedriveLetters,
  identified: readonly Identified[],
): Promise<readonly Sending[]> {
  const sendings: Sending[] = []
  for (const each of identified) {
    const { edit = null, letterId } = each.plan.request
    if (edit === null || typeof edit === 'number') sendings.push({ ...each, edit })
    else {
      const kept = { letterId, ...edit, actor, now, ...(audit && { audit }) }
      sendings.push({ ...each, edit: await insertEdit(transaction, kept) })
    }
  }
  return sendings
}

/** The order of KSUIDs is the order of their UUIDs. */
function compareByLetter({ plan: left }: Identified, { plan: right }: Identified): number {
  return left.request.letterId < right.request.letterId ? -1 : 1
}

function send(
  transaction: Transaction,
  { now, actor }: RedriveLetters,
  sendings: readonly Sending[],
  progress: SendProgress,
  results: (RedriveResult | undefined)[],
): Promise<unknown> {
  const rows: StoredHead[] = []
  const numbers: number[] = []
  for (const { plan, id, edit } of sendings) {
    const { request, found, target, partition, index } = plan
    const { queueRow, letter } = found
    const { letterId, campaign = null } = request
    const queue = target.queue.name
    const to = { kind: 'queue', name: queue, partition, id } as const
    const item = startRedrive(letter, { at: now, deadline: noDeadline, actor, campaign, target: to, edit })
    const number = item.letter?.redrives[0]?.number ?? 1
    rows.push({ queueId: queueRow.id, queue: queueRow.queue, item })
    numbers.push(number)
    transaction.countChanges.leave(queueRow.id, letter)
    transaction.countChanges.enter(queueRow.id, item)
    transaction.countChanges.addWaiting(target.id, partition, now)
    progress.send(campaign)
    const result = { letterId, isStarted: true, queue, partition, id, number } as const
    results[index] = edit === null ? result : { ...result, edit }
  }
  const shared = getSharedValues(sharedColumns, rows)
  if (shared === undefined) throw new Error('the shared columns of redriven letters differ')
  return transaction.connection.query(sendLetters, [
    list(sendings.map(({ plan }) => plan.found.location)),
    list(sendings.map(({ plan }) => plan.found.version)),
    ...encode(ownColumns, rows),
    encodeInt4s(sendings.map(({ plan }) => plan.target.id)),
    encodeInt4s(sendings.map(({ plan }) => plan.partition)),
    encodeTexts(sendings.map(({ id }) => id)),
    encodeTexts(sendings.map(({ plan }) => plan.request.letterId)),
    encodeInt4s(numbers),
    encodeInt8s(sendings.map(({ plan }) => addDuration(now, plan.target.queue.expireTimeoutUs))),
    encodeInt4s(sendings.map(({ edit }) => edit)),
    now,
    ...shared,
  ])
}

type Target = QueueRow | 'no-target' | 'dead-target'

/** The queues that the letters go to, by name. Locks the partitions that the letters go to. */
async function lockTargets(
  transaction: Transaction,
  { letters, targetNamespaces }: RedriveLetters,
  snapshots: ReadonlyMap<string, LetterSnapshot>,
): Promise<ReadonlyMap<string, Target>> {
  const addressed = letters.map((request) => {
    const { origin = null } = snapshots.get(request.letterId)?.letter ?? {}
    return { origin, name: chooseTarget(request, { origin }) }
  })
  const targets = await findTargets(
    transaction,
    addressed.flatMap(({ name }) => name ?? []),
    targetNamespaces,
  )
  const partitions = new Map<string, PartitionRef>()
  for (const { name, origin } of addressed) {
    const target = targets.get(name ?? '') ?? 'no-target'
    if (typeof target === 'string' || origin === null) continue
    const partition = mapPartition(origin.partition ?? 0, target.queue)
    partitions.set(`${target.id}/${partition}`, { queueRow: target, partition })
  }
  await transaction.lockPartitions([...partitions.values()])
  return targets
}

async function findTargets(
  transaction: Transaction,
  queueNames: readonly string[],
  namespaces: readonly string[] | undefined,
): Promise<ReadonlyMap<string, Target>> {
  const names = [...new Set(queueNames)].filter(isStorableText)
  const targets = new Map<string, Target>()
  if (names.length === 0) return targets
  await transaction.load(names.filter((name) => transaction.getLoaded(name) === undefined))
  for (const name of names) targets.set(name, transaction.getLoaded(name) ?? 'no-target')
  const dead = await transaction.connection.query(findDeadQueues, [encodeTexts(names)])
  for (const row of dead) targets.set(readText(row, 'name'), 'dead-target')
  for (const name of names) {
    const namespace = transaction.getLoaded(name)?.queue.namespace
    if (namespace !== undefined && namespaces?.includes(namespace) === false) targets.set(name, 'no-target')
  }
  return targets
}

/** Returns a function that tells whether the edited version that a request names by its number exists. */
async function findExistingEdits(
  transaction: Transaction,
  requests: readonly Request[],
): Promise<(request: Request) => boolean> {
  const named = requests.flatMap(({ edit, letterId }) =>
    typeof edit === 'number' && isKsuid(letterId) ? [{ edit, letterId }] : [],
  )
  if (named.length === 0) return ({ edit }) => typeof edit !== 'number'
  const rows = await transaction.connection.query(findEdits, [
    encodeTexts(named.map(({ letterId }) => letterId)),
    encodeInt4s(named.map(({ edit }) => edit)),
  ])
  const existing = new Set(rows.map((row) => `${readNumber(row, 'number')}/${readText(row, 'letter_id')}`))
  return ({ edit, letterId }) => typeof edit !== 'number' || existing.has(`${edit}/${letterId}`)
}

/** Creates the ids of each partition in one go, in the order of the letters. */
function createIds(transaction: Transaction, plans: readonly Plan[], now: number): (plan: Plan) => string {
  const toPartitionKey = ({ target, partition }: Plan) => `${target.id}/${partition}`
  const partitions = new Map<string, { plan: Plan; count: number }>()
  for (const plan of plans) {
    const counted = partitions.get(toPartitionKey(plan))
    if (counted === undefined) partitions.set(toPartitionKey(plan), { plan, count: 1 })
    else counted.count++
  }
  const ids = new Map<string, Iterator<string>>()
  for (const [key, { plan, count }] of partitions) {
    ids.set(key, transaction.allocateIds(plan.target, plan.partition, now, count).values())
  }
  return (plan) => ids.get(toPartitionKey(plan))?.next().value as string
}

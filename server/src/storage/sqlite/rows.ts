import { Buffer } from 'node:buffer'
import type { Failure, Header, Item, LetterFacts, Origin } from '../../core/item.ts'
import { isRedriving, noDeadline } from '../../core/letter.ts'
import { dueAt } from '../../core/transitions.ts'
import { leaseDeadlineOf, waitingOf } from '../lease-deadline.ts'
import { redrivesCounted } from '../letter-store.ts'
import type { ListedState } from '../storage.ts'
import type { Bound, Values } from './database.ts'
import type { KnownQueue } from './queues.ts'

/** As stored. The numbers are part of the schema: the partial indexes name them. */
export const stateCodes = { waiting: 0, leased: 1, done: 2, dead: 3, discarded: 4 } as const
/** Of letters, which are listed and counted with scheduled apart from waiting. */
export const listedCodes = { ...stateCodes, scheduled: 5 } as const satisfies Record<ListedState, number>

export function listedStateOf(item: Item): ListedState {
  return item.state === 'waiting' && item.availableAt !== null ? 'scheduled' : item.state
}

const listedNames = Object.keys(listedCodes) as readonly ListedState[]
const listedByCode = new Map(listedNames.map((name) => [listedCodes[name] as number, name]))

export function listedOfCode(code: unknown): ListedState {
  const name = listedByCode.get(code as number)
  if (name === undefined) throw new Error(`there is no state with the code ${code}`)
  return name
}

/** In the order in which `itemValues` gives them. The payload is last: what is read without it is read faster. */
export const itemColumns = [
  'queue_id',
  'partition',
  'id',
  'root_id',
  'source_id',
  'state',
  'attempts',
  'attempts_max',
  'priority',
  'kind',
  'encoding',
  'reference',
  'key',
  'headers',
  'created_at',
  'updated_at',
  'expire_deadline',
  'available_at',
  'lease_holder',
  'lease_deadline',
  'ended_at',
  'died_at',
  'due_at',
  'failure',
  'origin',
  'letter_id',
  'redrives',
  'group_id',
  'letter_state',
  'letter_redrives',
  'redrive_at',
  'history',
  'letter',
  'key_run',
  'payload',
] as const

export const itemColumnList = itemColumns.join(', ')

/** `keyRun`: of a letter with a key that is new (key-runs.ts). */
export function itemValues(queue: KnownQueue, item: Item, keyRun: number | null = null): Bound[] {
  return [
    queue.id,
    item.partition,
    item.id,
    item.rootId,
    item.sourceId,
    stateCodes[item.state],
    item.attempts,
    item.attemptsMax,
    item.priority,
    item.kind,
    item.encoding,
    item.reference,
    item.key,
    headersToText(item.headers),
    item.createdAt,
    item.updatedAt,
    item.expireDeadline,
    item.state === 'waiting' ? item.availableAt : null,
    item.state === 'leased' ? item.lease.holder : null,
    leaseDeadlineOf(item),
    'endedAt' in item ? item.endedAt : null,
    item.diedAt,
    dueAtOf(item, queue),
    item.failure && JSON.stringify(item.failure),
    item.origin && JSON.stringify(item.origin),
    item.letterId,
    item.redrives,
    item.groupId,
    item.groupId === null ? null : listedCodes[listedStateOf(item)],
    item.groupId === null ? null : Math.min(item.redrives, redrivesCounted),
    item.letter?.nextRedriveAt ?? null,
    item.history.length === 0 ? null : JSON.stringify(item.history),
    item.letter && factsToText(item.letter),
    keyRun,
    item.payload,
  ]
}

/** A letter whose redrive is an item of this store ends with that: it is not kept among what comes due. */
function dueAtOf(item: Item, queue: KnownQueue): number | null {
  const at = dueAt(item, queue.queue)
  return at === noDeadline && isRedriving(item) ? null : at
}

/** From a row of `itemColumnList`, in that order. */
export function itemOf(row: Values, queueName: string): Item {
  const [
    ,
    partition,
    id,
    rootId,
    sourceId,
    state,
    attempts,
    attemptsMax,
    priority,
    kind,
    encoding,
    reference,
  ] = row
  const [key, headers, createdAt, updatedAt, expireDeadline, availableAt, leaseHolder, leaseDeadline] =
    row.slice(12)
  const [endedAt, diedAt, , failure, origin, letterId, redrives, groupId, , , redriveAt] = row.slice(20)
  const [history, letter, , payload] = row.slice(31)
  const base = {
    id: id as string,
    rootId: rootId as string,
    queue: queueName,
    partition: partition as number,
    sourceId: sourceId as string | null,
    attempts: attempts as number,
    attemptsMax: attemptsMax as number,
    priority: priority as number,
    kind: kind as string,
    encoding: encoding as string,
    reference: reference as string,
    key: key as Uint8Array | null,
    headers: headersOf(headers as string | null),
    payload: payload as Uint8Array,
    createdAt: createdAt as number,
    updatedAt: updatedAt as number,
    expireDeadline: expireDeadline as number,
    failure: failure === null ? null : (JSON.parse(failure as string) as Failure),
    origin: origin === null ? null : (JSON.parse(origin as string) as Origin),
    diedAt: diedAt as number | null,
    letterId: letterId as string | null,
    redrives: redrives as number,
    groupId: groupId as number | null,
    history: history === null ? noHistory : (JSON.parse(history as string) as Failure[]),
    letter: groupId === null ? null : factsOf(letter as string | null, redriveAt as number | null),
  }
  switch (state) {
    case stateCodes.waiting:
      return waitingOf(base, availableAt as number | null, leaseDeadline as number | null)
    case stateCodes.leased: {
      const lease = { holder: leaseHolder as string, deadline: leaseDeadline as number }
      return { ...base, state: 'leased', lease }
    }
    case stateCodes.done:
      return { ...base, state: 'done', endedAt: endedAt as number }
    case stateCodes.dead:
      return { ...base, state: 'dead', endedAt: endedAt as number }
    default:
      return { ...base, state: 'discarded', endedAt: endedAt as number }
  }
}

/** Most letters are as they came: for those nothing is written, and nothing has to be read. */
export function factsToText(facts: LetterFacts): string | null {
  const { requeues, lastRedriveAt, redrives, nextRedriveAt, discardReason, ...rest } = facts
  const isAsItCame =
    requeues === 0 &&
    lastRedriveAt === null &&
    redrives.length === 0 &&
    discardReason === '' &&
    Object.keys(rest).length === 0
  return isAsItCame ? null : JSON.stringify(facts)
}

export function factsOf(text: string | null, redriveAt: number | null): LetterFacts {
  if (text !== null) return JSON.parse(text) as LetterFacts
  return { requeues: 0, lastRedriveAt: null, redrives: [], nextRedriveAt: redriveAt, discardReason: '' }
}

const noHeaders: readonly Header[] = []
const noHistory: readonly Failure[] = []

export function headersToText(headers: readonly Header[]): string | null {
  if (headers.length === 0) return null
  return JSON.stringify(
    headers.map(([name, value]) => [name, value === null ? null : Buffer.from(value).toString('base64')]),
  )
}

export function headersOf(text: string | null): readonly Header[] {
  if (text === null) return noHeaders
  const pairs = JSON.parse(text) as readonly (readonly [string, string | null])[]
  return pairs.map(([name, value]) => [
    name,
    value === null ? null : new Uint8Array(Buffer.from(value, 'base64')),
  ])
}

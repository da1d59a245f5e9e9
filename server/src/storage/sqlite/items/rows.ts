import { Buffer } from 'node:buffer'
import {
  type Failure,
  type Header,
  type Item,
  type LetterFacts,
  type ListedState,
  listedState,
  type Origin,
} from '../../../core/item.ts'
import { isRedriving, noDeadline } from '../../../core/letter.ts'
import { dueAt } from '../../../core/transitions.ts'
import { headBytes, type ListedLetter, redrivesCounted } from '../../contract/letters.ts'
import { leaseDeadlineOf, waitingOf } from '../../shared/lease-deadline.ts'
import type { Bound, Values } from '../connection/database.ts'
import type { QueueRow } from '../queues/queue-cache.ts'

/** As stored. The numbers are part of the schema: the partial indexes name them. */
export const stateCodes = { waiting: 0, leased: 1, done: 2, dead: 3, discarded: 4 } as const
/** Of letters, which are listed and counted with scheduled apart from waiting. */
export const listedCodes = { ...stateCodes, scheduled: 5 } as const satisfies Record<ListedState, number>

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
export function itemValues(queue: QueueRow, item: Item, keyRun: number | null = null): Bound[] {
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
    item.groupId === null ? null : listedCodes[listedState(item)],
    item.groupId === null ? null : Math.min(item.redrives, redrivesCounted),
    item.letter?.nextRedriveAt ?? null,
    item.history.length === 0 ? null : JSON.stringify(item.history),
    item.letter && factsToText(item.letter),
    keyRun,
    item.payload,
  ]
}

/** A letter whose redrive is an item of this store ends with that: it is not kept among what comes due. */
function dueAtOf(item: Item, queue: QueueRow): number | null {
  const at = dueAt(item, queue.queue)
  return at === noDeadline && isRedriving(item) ? null : at
}

type Column = (typeof itemColumns)[number]
/** The place of each column in a row. */
const at = Object.fromEntries(itemColumns.map((column, place) => [column, place])) as Record<Column, number>

/** From a row of `itemColumnList`, in that order. */
export function itemOf(row: Values, queueName: string): Item {
  const headers = row[at.headers] as string | null
  const failure = row[at.failure] as string | null
  const origin = row[at.origin] as string | null
  const history = row[at.history] as string | null
  const groupId = row[at.group_id] as number | null
  const base = {
    id: row[at.id] as string,
    rootId: row[at.root_id] as string,
    queue: queueName,
    partition: row[at.partition] as number,
    sourceId: row[at.source_id] as string | null,
    attempts: row[at.attempts] as number,
    attemptsMax: row[at.attempts_max] as number,
    priority: row[at.priority] as number,
    kind: row[at.kind] as string,
    encoding: row[at.encoding] as string,
    reference: row[at.reference] as string,
    key: row[at.key] as Uint8Array | null,
    headers: headersOf(headers),
    payload: row[at.payload] as Uint8Array,
    createdAt: row[at.created_at] as number,
    updatedAt: row[at.updated_at] as number,
    expireDeadline: row[at.expire_deadline] as number,
    failure: failure === null ? null : (JSON.parse(failure) as Failure),
    origin: origin === null ? null : (JSON.parse(origin) as Origin),
    diedAt: row[at.died_at] as number | null,
    letterId: row[at.letter_id] as string | null,
    redrives: row[at.redrives] as number,
    groupId,
    history: history === null ? noHistory : (JSON.parse(history) as Failure[]),
    letter:
      groupId === null ? null : factsOf(row[at.letter] as string | null, row[at.redrive_at] as number | null),
  }
  const leaseDeadline = row[at.lease_deadline] as number | null
  switch (row[at.state]) {
    case stateCodes.waiting:
      return waitingOf(base, row[at.available_at] as number | null, leaseDeadline)
    case stateCodes.leased: {
      const lease = { holder: row[at.lease_holder] as string, deadline: leaseDeadline as number }
      return { ...base, state: 'leased', lease }
    }
    case stateCodes.done:
      return { ...base, state: 'done', endedAt: row[at.ended_at] as number }
    case stateCodes.dead:
      return { ...base, state: 'dead', endedAt: row[at.ended_at] as number }
    default:
      return { ...base, state: 'discarded', endedAt: row[at.ended_at] as number }
  }
}

/** The same places in the row without headers and history (a part of nothing is null), with the beginning of the payload and, after it, how long that is. */
export const headColumnList = `${itemColumns
  .map((column) =>
    column === 'payload'
      ? `coalesce(substr(payload, 1, ${headBytes}), x'') as payload`
      : column === 'headers' || column === 'history'
        ? `null as ${column}`
        : column,
  )
  .join(', ')}, length(payload) as payload_bytes`

export function headOf(row: Values, queueName: string): ListedLetter {
  const item = itemOf(row, queueName)
  const payloadBytes = row[itemColumns.length] as number
  return payloadBytes > headBytes ? { ...item, payloadBytes } : item
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

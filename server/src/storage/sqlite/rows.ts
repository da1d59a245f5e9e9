import { Buffer } from 'node:buffer'
import type { Failure, Header, Item, Origin } from '../../core/item.ts'
import { dueAt } from '../../core/transitions.ts'
import type { Bound, Row } from './database.ts'
import type { KnownQueue } from './queues.ts'

/** As stored. The numbers are part of the schema: the partial indexes name them. */
export const stateCodes = { waiting: 0, leased: 1, done: 2, dead: 3 } as const

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
  'payload',
] as const

export const itemColumnList = itemColumns.join(', ')

export function itemValues(queue: KnownQueue, item: Item): Bound[] {
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
    item.state === 'leased' ? item.lease.deadline : null,
    item.state === 'done' || item.state === 'dead' ? item.endedAt : null,
    item.diedAt,
    dueAt(item, queue.queue),
    item.failure && JSON.stringify(item.failure),
    item.origin && JSON.stringify(item.origin),
    item.letterId,
    item.redrives,
    item.payload,
  ]
}

export function itemOf(row: Row, queueName: string): Item {
  const base = {
    id: row.id as string,
    rootId: row.root_id as string,
    queue: queueName,
    partition: row.partition as number,
    sourceId: row.source_id as string | null,
    attempts: row.attempts as number,
    attemptsMax: row.attempts_max as number,
    priority: row.priority as number,
    kind: row.kind as string,
    encoding: row.encoding as string,
    reference: row.reference as string,
    key: row.key as Uint8Array | null,
    headers: headersOf(row.headers as string | null),
    payload: row.payload as Uint8Array,
    createdAt: row.created_at as number,
    updatedAt: row.updated_at as number,
    expireDeadline: row.expire_deadline as number,
    failure: row.failure === null ? null : (JSON.parse(row.failure as string) as Failure),
    origin: row.origin === null ? null : (JSON.parse(row.origin as string) as Origin),
    diedAt: row.died_at as number | null,
    letterId: row.letter_id as string | null,
    redrives: row.redrives as number,
  }
  switch (row.state) {
    case stateCodes.waiting:
      return { ...base, state: 'waiting', availableAt: row.available_at as number | null }
    case stateCodes.leased: {
      const lease = { holder: row.lease_holder as string, deadline: row.lease_deadline as number }
      return { ...base, state: 'leased', lease }
    }
    case stateCodes.done:
      return { ...base, state: 'done', endedAt: row.ended_at as number }
    default:
      return { ...base, state: 'dead', endedAt: row.ended_at as number }
  }
}

const noHeaders: readonly Header[] = []

function headersToText(headers: readonly Header[]): string | null {
  if (headers.length === 0) return null
  return JSON.stringify(
    headers.map(([name, value]) => [name, value === null ? null : Buffer.from(value).toString('base64')]),
  )
}

function headersOf(text: string | null): readonly Header[] {
  if (text === null) return noHeaders
  const pairs = JSON.parse(text) as readonly (readonly [string, string | null])[]
  return pairs.map(([name, value]) => [
    name,
    value === null ? null : new Uint8Array(Buffer.from(value, 'base64')),
  ])
}

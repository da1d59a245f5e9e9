/**
 * The records of one partition that wait in Redrive: for a long delay, or behind such a record or a dead one
 * with the same key. They are items of a paused queue of this partition and group, so no other worker leases
 * them. The worker that has the partition is the only one that changes them.
 *
 * An item is never changed: a new one with the newer state is stored first, then the old one is deleted. A
 * crash can leave two items of one record; the newer one counts.
 */
import type { Client } from '../../client.ts'
import { RedriveError } from '../../http/error.ts'
import { KafkaRecord } from '../records/kafka-record.ts'
import { type Attempts, noAttempts } from './attempts.ts'

/**
 * - `retry`: waits for its next attempt.
 * - `waiting`: waits for the records of its key before it.
 * - `held`: is dead, and its key waits until its letter is RESOLVED or discarded.
 */
export type ParkedKind = 'retry' | 'waiting' | 'held'

export type ParkedRecord = {
  readonly offset: number
  /** Records with equal names keep their order; a record without key has a name of its own. */
  readonly keyName: string
  kind: ParkedKind
  dueAtMs: number
  attempts: Attempts
  /** The id of the item in Redrive. */
  itemId: string
  /** Distinguishes the states of one record. */
  version: number
}

export type ParkedQueueParts = Readonly<{
  client: Client
  /** Unique for each start of a worker. */
  runId: string
  topic: string
  partition: number
  group: string
}>

const itemKind = 'kafka-record'
const pageSize = 50
/** The queue is paused, so its items are never leased; they must not expire either. */
const expireTimeout = '87600h'
/** An item that becomes available gets a new id. The worker keeps the time, and the item stays as it is. */
const farMs = 10 * 365 * 24 * 3_600_000

export class ParkedQueue {
  readonly name: string
  readonly #parts: ParkedQueueParts
  #isCreated = false
  #stored = 0

  constructor(parts: ParkedQueueParts) {
    this.#parts = parts
    this.name = nameParkedQueue(parts.topic, parts.partition, parts.group)
  }

  /** All records, in the order of their offsets. */
  async load(): Promise<ParkedRecord[]> {
    const found = new Map<number, ParkedRecord>()
    const outdated: string[] = []
    for await (const { parked } of this.#listAll()) {
      const other = found.get(parked.offset)
      const isNewer = other === undefined || other.version < parked.version
      if (isNewer) found.set(parked.offset, parked)
      if (other !== undefined) outdated.push(isNewer ? other.itemId : parked.itemId)
    }
    await this.#delete(outdated)
    return [...found.values()].toSorted((one, other) => one.offset - other.offset)
  }

  /** Stores a record, or its new state, and fills in its item. */
  async store(record: KafkaRecord, parked: ParkedRecord): Promise<void> {
    await this.#ensure()
    const before = parked.itemId
    parked.version++
    // Repeated calls of this run store it once. Another run that stores the same record is found by `load`.
    const key = `${this.#parts.runId}/${this.#stored++}`
    const item = {
      payload: { text: encode(record, parked) },
      kind: itemKind,
      reference: `${record.topic}/${record.partition}/${record.offset}`,
      availableAt: new Date(Date.now() + farMs),
    }
    const { ids } = await this.#parts.client.produceOnce(this.name, key, item)
    parked.itemId = ids[0] ?? ''
    if (before !== '') await this.#delete([before])
  }

  /** Null: an operator has deleted the item. */
  async read(parked: ParkedRecord): Promise<KafkaRecord | null> {
    const [item] = await this.#parts.client.listScheduledItems(this.name, { from: parked.itemId, limit: 1 })
    if (item?.id === parked.itemId) return decode(item.id, item.payload)?.record ?? null
    // An item that is changed by hand gets another id.
    for await (const found of this.#listAll()) {
      if (found.parked.offset !== parked.offset) continue
      parked.itemId = found.parked.itemId
      return found.record
    }
    return null
  }

  async remove(parked: ParkedRecord): Promise<void> {
    await this.#delete([parked.itemId])
  }

  async *#listAll(): AsyncGenerator<Decoded> {
    for (const list of ['listScheduledItems', 'listItems'] as const)
      for await (const { id, payload } of this.#list(list)) {
        const decoded = decode(id, payload)
        if (decoded !== null) yield decoded
      }
  }

  async *#list(list: 'listItems' | 'listScheduledItems') {
    let from: string | undefined
    for (;;) {
      const query = { limit: pageSize, ...(from !== undefined && { from }) }
      const page = await this.#parts.client[list](this.name, query).catch(ignoreMissingQueue)
      const fresh = page.filter(({ id }) => id !== from)
      yield* fresh
      if (page.length < pageSize) return
      from = page.at(-1)?.id
    }
  }

  async #ensure(): Promise<void> {
    if (this.#isCreated) return
    const { topic, partition, group } = this.#parts
    const reference = `records of ${topic}, partition ${partition}, that wait for group ${group}`
    const policy = { attemptsMax: 0, expireTimeout, onDead: 'keep', reference } as const
    await this.#parts.client
      .createQueue({ name: this.name, policy, isPaused: true })
      .catch((error: unknown) => {
        if (!(error instanceof RedriveError) || error.code !== 'QUEUE_EXISTS') throw error
      })
    this.#isCreated = true
  }

  async #delete(ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#parts.client.deleteItems(this.name, 0, ids).catch(ignoreMissingQueue)
  }
}

export function nameParkedQueue(topic: string, partition: number, group: string): string {
  return `${topic}.${partition}.parked.${group.replaceAll(/[^a-zA-Z0-9._-]/g, '_')}`
}

export function nameKey({ key, offset }: Pick<KafkaRecord, 'key' | 'offset'>): string {
  return key === null ? `#${offset}` : `=${key.toString('base64')}`
}

function ignoreMissingQueue(error: unknown): [] {
  if (error instanceof RedriveError && error.code === 'QUEUE_NOT_FOUND') return []
  throw error
}

type Stored = Readonly<{
  topic: string
  partition: number
  offset: number
  timestamp_ms: number
  key: string | null
  value: string | null
  headers: readonly (readonly [name: string | null, value: string | null])[]
  waits_for: ParkedKind
  due_at_ms: number
  attempts: Attempts
  version: number
}>

const toText = (bytes: Uint8Array | null) => (bytes === null ? null : Buffer.from(bytes).toString('base64'))
const toBytes = (text: string | null) => (text === null ? null : Buffer.from(text, 'base64'))

function encode(record: KafkaRecord, { kind, dueAtMs, attempts, version }: ParkedRecord): string {
  const { topic, partition, offset, timestampMs, key, value, rawHeaders } = record
  const stored: Stored = {
    topic,
    partition,
    offset,
    timestamp_ms: timestampMs,
    key: toText(key),
    value: toText(value),
    headers: rawHeaders.map(([name, held]) => [toText(name), toText(held)]),
    waits_for: kind,
    due_at_ms: dueAtMs,
    attempts,
    version,
  }
  return JSON.stringify(stored)
}

type Decoded = Readonly<{ record: KafkaRecord; parked: ParkedRecord }>

function decode(itemId: string, payload: Uint8Array): Decoded | null {
  const stored = parse(payload)
  if (stored === null) return null
  const {
    topic,
    partition,
    offset,
    timestamp_ms: timestampMs,
    waits_for: kind,
    due_at_ms: dueAtMs,
    version,
  } = stored
  const record = new KafkaRecord({
    topic,
    partition,
    offset,
    timestampMs,
    key: toBytes(stored.key),
    value: toBytes(stored.value),
    rawHeaders: stored.headers.map(([name, held]) => [toBytes(name), toBytes(held)]),
  })
  const attempts = { ...noAttempts, ...stored.attempts }
  return { record, parked: { offset, keyName: nameKey(record), kind, dueAtMs, attempts, itemId, version } }
}

/** Null: the item is not from a worker. It is left alone. */
function parse(payload: Uint8Array): Stored | null {
  try {
    const json = JSON.parse(new TextDecoder().decode(payload)) as Stored
    return typeof json?.offset === 'number' && Array.isArray(json.headers) ? json : null
  } catch {
    return null
  }
}

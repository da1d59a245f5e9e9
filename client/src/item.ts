import { fromBase64, toBase64 } from './base64.ts'
import { fromWireTime, type Time, toWireTime } from './time.ts'

export type Payload = string | Uint8Array

/** An item to produce: a payload alone, or a payload with its description. */
export type NewItem =
  | Payload
  | Readonly<{
      payload: Payload
      kind?: string
      encoding?: string
      reference?: string
      /** The item is scheduled: no worker can lease it before this time. */
      availableAt?: Time
    }>

/** An item for `produceOnce`, which supports more fields than `produce`. */
export type KeyedItem =
  | Payload
  | (Extract<NewItem, { payload: Payload }> &
      Readonly<{
        /** Items with a higher priority are leased first. Default 0. */
        priority?: number
        /** Overrides the queue's `attemptsMax`. */
        attemptsMax?: number
      }>)

/** The payload of an item as bytes, text or JSON. */
class WithPayload {
  readonly payload: Uint8Array

  constructor(base64: string | undefined) {
    this.payload = base64 ? fromBase64(base64) : new Uint8Array(0)
  }

  /** Decodes the payload as UTF-8. */
  text(): string {
    return new TextDecoder().decode(this.payload)
  }

  /** Parses the payload as JSON. Throws a SyntaxError if it is not JSON. */
  json<T = unknown>(): T {
    return JSON.parse(this.text()) as T
  }
}

export type WireLeasedItem = Readonly<{
  id: string
  attempts?: number
  lease_deadline: string
  reference?: string
  encoding?: string
  kind?: string
  bytes?: string
}>

/** An item that this client has leased. */
export class LeasedItem extends WithPayload {
  readonly id: string
  /** Including the current attempt. */
  readonly attempts: number
  readonly leaseDeadline: string
  readonly reference: string
  readonly encoding: string
  readonly kind: string

  constructor(wire: WireLeasedItem) {
    super(wire.bytes)
    this.id = wire.id
    this.attempts = wire.attempts ?? 0
    this.leaseDeadline = wire.lease_deadline
    this.reference = wire.reference ?? ''
    this.encoding = wire.encoding ?? ''
    this.kind = wire.kind ?? ''
  }
}

export type WireStoredItem = Readonly<{
  id?: string
  source_id?: string
  is_leased?: boolean
  lease_deadline?: string
  expire_deadline?: string
  created_at?: string
  enqueue_at?: string
  attempts?: number
  max_attempts?: number
  reference?: string
  encoding?: string
  kind?: string
  payload?: string
}>

/** An item as stored in its queue. A missing time is null. */
export class StoredItem extends WithPayload {
  readonly id: string
  readonly sourceId: string
  readonly isLeased: boolean
  readonly leaseDeadline: string | null
  readonly expireDeadline: string | null
  readonly createdAt: string | null
  /** Set for scheduled items only. */
  readonly availableAt: string | null
  readonly attempts: number
  /** 0: the queue's `attemptsMax` applies. */
  readonly attemptsMax: number
  readonly reference: string
  readonly encoding: string
  readonly kind: string

  constructor(wire: WireStoredItem) {
    super(wire.payload)
    this.id = wire.id ?? ''
    this.sourceId = wire.source_id ?? ''
    this.isLeased = wire.is_leased ?? false
    this.leaseDeadline = fromWireTime(wire.lease_deadline)
    this.expireDeadline = fromWireTime(wire.expire_deadline)
    this.createdAt = fromWireTime(wire.created_at)
    this.availableAt = fromWireTime(wire.enqueue_at)
    this.attempts = wire.attempts ?? 0
    this.attemptsMax = wire.max_attempts ?? 0
    this.reference = wire.reference ?? ''
    this.encoding = wire.encoding ?? ''
    this.kind = wire.kind ?? ''
  }
}

/** An item to be stored exactly as given. The server only assigns the id and the creation time. */
export type ImportedItem = Readonly<{
  payload: Payload
  sourceId?: string
  isLeased?: boolean
  leaseDeadline?: Time
  expireDeadline?: Time
  attempts?: number
  attemptsMax?: number
  reference?: string
  encoding?: string
  kind?: string
}>

export function toWireItem(item: NewItem): unknown {
  if (typeof item === 'string') return { utf8: item }
  if (item instanceof Uint8Array) return { bytes: toBase64(item) }
  const { payload, kind, encoding, reference, availableAt } = item
  return {
    ...(typeof payload === 'string' ? { utf8: payload } : { bytes: toBase64(payload) }),
    kind,
    encoding,
    reference,
    enqueue_at: availableAt && toWireTime(availableAt),
  }
}

/** With the field names of `/api/v1`. */
export function toWireKeyed(item: KeyedItem): unknown {
  if (typeof item === 'string') return { text: item }
  if (item instanceof Uint8Array) return { payload: toBase64(item) }
  const { payload, kind, encoding, reference, availableAt, priority, attemptsMax } = item
  return {
    ...(typeof payload === 'string' ? { text: payload } : { payload: toBase64(payload) }),
    kind,
    encoding,
    reference,
    available_at: availableAt && toWireTime(availableAt),
    priority,
    attempts_max: attemptsMax,
  }
}

export function toWireImported(item: ImportedItem): WireStoredItem {
  const { payload, sourceId, isLeased, leaseDeadline, expireDeadline, attempts, attemptsMax } = item
  const bytes = typeof payload === 'string' ? new TextEncoder().encode(payload) : payload
  return withoutUndefined({
    source_id: sourceId,
    is_leased: isLeased,
    lease_deadline: leaseDeadline && toWireTime(leaseDeadline),
    expire_deadline: expireDeadline && toWireTime(expireDeadline),
    attempts,
    max_attempts: attemptsMax,
    reference: item.reference,
    encoding: item.encoding,
    kind: item.kind,
    payload: toBase64(bytes),
  })
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function withoutUndefined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>
}

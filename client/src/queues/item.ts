import { decodeBase64, toBase64 } from '../http/base64.ts'
import {
  type MessageHeader,
  type MessageKey,
  type Payload,
  toContent,
  toTextOrBase64,
  toWireHeader,
} from '../http/content.ts'
import { fromWireTime, type Time, toWireTime } from '../http/time.ts'

/** An item to produce: its payload as text or bytes, or a payload with its description. */
export type NewItem =
  | string
  | Uint8Array
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
  | string
  | Uint8Array
  | (Extract<NewItem, { payload: Payload }> &
      Readonly<{
        /** Items with a higher priority are leased first. Default 0. */
        priority?: number
        /** Overrides the queue's `attemptsMax`. */
        attemptsMax?: number
        key?: MessageKey
        headers?: readonly MessageHeader[]
      }>)

/** The payload of an item as bytes, text or JSON. */
class WithPayload {
  readonly payload: Uint8Array

  constructor(base64: string | undefined) {
    this.payload = base64 ? decodeBase64(base64) : new Uint8Array(0)
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
  traceparent?: string
  tracestate?: string
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
  /** The trace of the item (W3C Trace Context); null if it has none, or an invalid one. */
  readonly traceparent: string | null
  readonly tracestate: string | null

  constructor(wire: WireLeasedItem) {
    super(wire.bytes)
    this.id = wire.id
    this.attempts = wire.attempts ?? 0
    this.leaseDeadline = wire.lease_deadline
    this.reference = wire.reference ?? ''
    this.encoding = wire.encoding ?? ''
    this.kind = wire.kind ?? ''
    this.traceparent = wire.traceparent ?? null
    this.tracestate = wire.tracestate ?? null
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

/** With the field names of the Queue API. */
export function toWireItem(item: NewItem): unknown {
  const { payload, kind, encoding, reference, availableAt } = toDescribedItem<NewItem>(item)
  const content = toTextOrBase64(payload)
  return {
    ...('text' in content ? { utf8: content.text } : { bytes: content.base64 }),
    kind,
    encoding,
    reference,
    enqueue_at: availableAt && toWireTime(availableAt),
  }
}

/** With the field names of `/api/v1`. */
export function toWireKeyed(item: KeyedItem): unknown {
  const { payload, key, headers, ...fields } = toDescribedItem<KeyedItem>(item)
  const { kind, encoding, reference, availableAt, priority, attemptsMax } = fields
  return {
    payload: toContent(payload),
    ...(key !== undefined && { key: toContent(key) }),
    ...(headers !== undefined && { headers: headers.map(toWireHeader) }),
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
  const content = toTextOrBase64(payload)
  return omitUndefined({
    source_id: sourceId,
    is_leased: isLeased,
    lease_deadline: leaseDeadline && toWireTime(leaseDeadline),
    expire_deadline: expireDeadline && toWireTime(expireDeadline),
    attempts,
    max_attempts: attemptsMax,
    reference: item.reference,
    encoding: item.encoding,
    kind: item.kind,
    payload: 'text' in content ? toBase64(new TextEncoder().encode(content.text)) : content.base64,
  })
}

function toDescribedItem<T extends NewItem>(item: T): Extract<T, { payload: Payload }> {
  const isPayload = typeof item === 'string' || item instanceof Uint8Array
  return (isPayload ? { payload: item } : item) as Extract<T, { payload: Payload }>
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function omitUndefined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>
}

/** Valid values for tests. A test names only the fields that matter to it. */

import type { Failure, Leased, Origin, Waiting } from '../src/core/items/item.ts'
import { buildQueue, type NewQueue, type Queue } from '../src/core/items/queue.ts'
import { type Instant, usPerSecond } from '../src/core/time/instant.ts'
import type { NewItem } from '../src/storage/contract/items.ts'

export const noon: Instant = Date.UTC(2026, 10, 15, 12) * 1_000

export const second = usPerSecond
export const minute = 60 * second
export const hour = 60 * minute
export const day = 24 * hour

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

export function toText(data: Uint8Array | null): string {
  return data === null ? 'null' : new TextDecoder().decode(data)
}

export function aQueue(changes: Partial<NewQueue> = {}): Queue {
  return buildQueue({ name: 'orders', ...changes }, noon)
}

export function aNewItem(changes: Partial<NewItem> = {}): NewItem {
  return { payload: bytes('an order'), ...changes }
}

/** `count` items whose payloads are `a-0`, `a-1`, … */
export function newItems(count: number, prefix = 'item', changes: Partial<NewItem> = {}): NewItem[] {
  return Array.from({ length: count }, (_, index) => ({ payload: bytes(`${prefix}-${index}`), ...changes }))
}

const base = {
  id: '0ujtsYcgvSTl8PAuAdqWYSMnLOv',
  rootId: '0ujtsYcgvSTl8PAuAdqWYSMnLOv',
  queue: 'orders',
  partition: 0,
  sourceId: null,
  attempts: 0,
  attemptsMax: 0,
  priority: 0,
  kind: '',
  encoding: '',
  reference: '',
  key: null,
  headers: [],
  payload: bytes('an order'),
  createdAt: noon,
  updatedAt: noon,
  expireDeadline: noon + day,
  failure: null,
  origin: null,
  deadLetteredAt: null,
  letterId: null,
  retryCount: 0,
  history: [],
  groupId: null,
  letter: null,
} as const

export function anItem(changes: Partial<Waiting> = {}): Waiting {
  return { ...base, state: 'waiting', availableAt: null, ...changes }
}

export function aLeasedItem(changes: Partial<Leased> = {}): Leased {
  return {
    ...base,
    attempts: 1,
    state: 'leased',
    lease: { holder: 'worker-1', deadline: noon + minute },
    ...changes,
  }
}

export function aFailure(changes: Partial<Failure> = {}): Failure {
  return {
    errorCode: 'http_503',
    errorClass: 'com.example.PaymentRefused',
    message: 'card 4711 was refused',
    stack: 'at pay (pay.ts:1:1)',
    attempts: 3,
    firstFailedAt: noon - 2 * hour,
    lastFailedAt: noon - hour,
    worker: 'worker-7',
    ...changes,
  }
}

export function anOrigin(changes: Partial<Origin> = {}): Origin {
  return {
    kind: 'kafka',
    name: 'payments',
    partition: 3,
    id: '42',
    group: 'billing',
    cluster: 'main',
    createdAt: noon - 3 * hour,
    ...changes,
  }
}

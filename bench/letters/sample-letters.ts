/**
 * The letters of the benchmarks, created from their number and therefore always the same: four dead queues,
 * sixty causes of very different size, and times over 30 days. Some values occur in one letter of a thousand.
 */

import type { NewQueue } from '../../server/src/core/items/queue.ts'
import type { Instant } from '../../server/src/core/time/instant.ts'
import type { ItemToImport } from '../../server/src/storage/contract/items.ts'

const usPerDay = 24 * 3600 * 1_000_000
const days = 30
const encoder = new TextEncoder()

/** `origin` is the queue that the letters came from, `percent` the share of all letters. */
export const deadQueues = [
  { name: 'payments-dead', origin: 'payments', letterClass: 'financial', percent: 15 },
  { name: 'orders-dead', origin: 'orders', letterClass: 'standard', percent: 50 },
  { name: 'mails-dead', origin: 'mails', letterClass: 'standard', percent: 30 },
  { name: 'stock-dead', origin: 'stock', letterClass: 'standard', percent: 5 },
] as const

export const queues: readonly NewQueue[] = deadQueues.flatMap(({ name, origin, letterClass }) => [
  { name, letterClass },
  { name: origin, deadQueue: name },
])

const causes = Array.from({ length: 60 }, (_, cause) => ({
  errorCode: ['attempts', 'declared_dead', 'expired', `http_${500 + (cause % 5)}`][cause % 4] as string,
  errorClass: `com.example.${['Timeout', 'Refused', 'BadData', 'Conflict', 'Missing'][cause % 5]}Error${cause % 12}`,
  words: ['connection to', 'answer of', 'record in', 'lock on', 'user of'][cause % 5] as string,
  service: `service-${'abcdefghijklmnopqrstuvwxyz'[cause % 26]}${'xyz'[cause % 3]}`,
}))

/** Values that one letter of a thousand has. */
export const rareValues = {
  text: 'request r-417 ',
  header: { name: 'x-tenant', value: 'tenant-417' },
  json: { path: ['order', 'tenant'], value: { number: '417' } },
} as const

/** A pseudo-random number that is always the same for the same input. */
function scramble(number: number): number {
  let random = Math.imul(number ^ 0x9e3779b9, 0x85ebca6b)
  random = Math.imul(random ^ (random >>> 13), 0xc2b2ae35)
  return (random ^ (random >>> 16)) >>> 0
}

export function createKey(number: number): Uint8Array {
  return encoder.encode(`customer-${scramble(number * 3 + 1) % 50_000}`)
}

/** Later for higher numbers, and always before `now`. */
export function computeDeadLetteredAt(number: number, count: number, now: Instant): Instant {
  return now - Math.floor((days * usPerDay * (count - number)) / count) - 60_000_000
}

export function chooseQueue(number: number): (typeof deadQueues)[number] {
  let random = scramble(number) % 100
  const found = deadQueues.find(({ percent }) => {
    random -= percent
    return random < 0
  })
  return found ?? deadQueues[0]
}

/** The share of all letters that this queue has, from 0 to 1. */
export function getQueueShare(name: (typeof deadQueues)[number]['name']): number {
  return (deadQueues.find((each) => each.name === name)?.percent ?? 0) / 100
}

export function createLetter(number: number, count: number, now: Instant): ItemToImport {
  const random = scramble(number * 7 + 3)
  // The cube makes a few causes have most of the letters.
  const cause = causes[Math.floor(causes.length * ((random % 10_000) / 10_000) ** 3)] ?? causes[0]
  if (cause === undefined) throw new Error('there are no causes')
  const tenant = scramble(number * 11 + 5) % 1_000
  const deadLetteredAt = computeDeadLetteredAt(number, count, now)
  const { origin } = chooseQueue(number)
  const id = `${origin}-${number}`
  return {
    payload: encoder.encode(
      JSON.stringify({
        order: { id: number, tenant, total: random % 100_000, currency: 'EUR' },
        items: [{ sku: `sku-${random % 977}`, count: random % 9 }],
        note: 'left at the door, please ring twice; '.repeat(3),
      }),
    ),
    key: createKey(number),
    headers: [
      ['x-tenant', encoder.encode(`tenant-${tenant}`)],
      ['traceparent', encoder.encode(`00-${random.toString(16).padStart(32, '0')}-01`)],
    ],
    sourceId: id,
    origin: {
      kind: 'queue',
      name: origin,
      partition: 0,
      id,
      group: null,
      cluster: null,
      createdAt: deadLetteredAt - 60_000_000,
    },
    failure: {
      errorCode: cause.errorCode,
      errorClass: cause.errorClass,
      message: `${cause.words} ${cause.service} failed: request r-${tenant} after ${random % 5_000} ms`,
      stack: `Error\n    at call (/app/src/${cause.service}.ts:12:5)\n    at handle (/app/src/handle.ts:88:11)`,
      attempts: 3,
      firstFailedAt: deadLetteredAt - 30_000_000,
      lastFailedAt: deadLetteredAt,
      worker: `worker-${random % 40}`,
    },
    deadLetteredAt,
  }
}

/**
 * The letters of the benchmark: made by number, always the same ones. Four dead queues, some sixty causes of very
 * unequal size, times over 30 days, and in each something that one letter in a thousand has.
 */
import type { Instant } from '../../server/src/core/instant.ts'
import type { NewQueue } from '../../server/src/core/queue.ts'
import type { ItemToImport } from '../../server/src/storage/contract/items.ts'

const usPerDay = 24 * 3600 * 1_000_000
const days = 30
const encoder = new TextEncoder()

/** Each with the queue that its letters came from, and how many of a hundred it has. */
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
  reason: ['attempts', 'declared_dead', 'expired', `http_${500 + (cause % 5)}`][cause % 4] as string,
  errorClass: `com.example.${['Timeout', 'Refused', 'BadData', 'Conflict', 'Missing'][cause % 5]}Error${cause % 12}`,
  words: ['connection to', 'answer of', 'record in', 'lock on', 'user of'][cause % 5] as string,
  place: `service-${'abcdefghijklmnopqrstuvwxyz'[cause % 26]}${'xyz'[cause % 3]}`,
}))

/** What one letter in a thousand has. */
export const needle = {
  text: 'request r-417 ',
  header: { name: 'x-tenant', value: 'tenant-417' },
  json: { path: ['order', 'tenant'], value: { number: '417' } },
} as const

/** A number that looks random and is not: the same for the same letter. */
function mixed(number: number): number {
  let mix = Math.imul(number ^ 0x9e3779b9, 0x85ebca6b)
  mix = Math.imul(mix ^ (mix >>> 13), 0xc2b2ae35)
  return (mix ^ (mix >>> 16)) >>> 0
}

export function keyOf(number: number): Uint8Array {
  return encoder.encode(`customer-${mixed(number * 3 + 1) % 50_000}`)
}

/** The oldest first; all before `now`. */
export function diedAtOf(number: number, count: number, now: Instant): Instant {
  return now - Math.floor((days * usPerDay * (count - number)) / count) - 60_000_000
}

export function queueOf(number: number): (typeof deadQueues)[number] {
  let mix = mixed(number) % 100
  const found = deadQueues.find(({ percent }) => {
    mix -= percent
    return mix < 0
  })
  return found ?? deadQueues[0]
}

/** The part of all letters that it has. */
export function queueShare(name: (typeof deadQueues)[number]['name']): number {
  return (deadQueues.find((each) => each.name === name)?.percent ?? 0) / 100
}

export function madeLetter(number: number, count: number, now: Instant): ItemToImport {
  const mix = mixed(number * 7 + 3)
  // Few causes have most of the letters.
  const cause = causes[Math.floor(causes.length * ((mix % 10_000) / 10_000) ** 3)] ?? causes[0]
  if (cause === undefined) throw new Error('there are no causes')
  const tenant = mixed(number * 11 + 5) % 1_000
  const diedAt = diedAtOf(number, count, now)
  const { origin } = queueOf(number)
  const id = `${origin}-${number}`
  return {
    payload: encoder.encode(
      JSON.stringify({
        order: { id: number, tenant, total: mix % 100_000, currency: 'EUR' },
        items: [{ sku: `sku-${mix % 977}`, count: mix % 9 }],
        note: 'left at the door, please ring twice; '.repeat(3),
      }),
    ),
    key: keyOf(number),
    headers: [
      ['x-tenant', encoder.encode(`tenant-${tenant}`)],
      ['traceparent', encoder.encode(`00-${mix.toString(16).padStart(32, '0')}-01`)],
    ],
    sourceId: id,
    origin: {
      kind: 'queue',
      name: origin,
      partition: 0,
      id,
      group: null,
      cluster: null,
      createdAt: diedAt - 60_000_000,
    },
    failure: {
      reason: cause.reason,
      errorClass: cause.errorClass,
      message: `${cause.words} ${cause.place} failed: request r-${tenant} after ${mix % 5_000} ms`,
      stack: `Error\n    at call (/app/src/${cause.place}.ts:12:5)\n    at handle (/app/src/handle.ts:88:11)`,
      attempts: 3,
      firstFailedAt: diedAt - 30_000_000,
      lastFailedAt: diedAt,
      worker: `worker-${mix % 40}`,
    },
    diedAt,
  }
}

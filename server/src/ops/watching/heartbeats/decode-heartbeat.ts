/**
 * Heartbeats in Redis: the key `worker:{type}:{instance_id}` with a JSON object of `timestamp`, `status`,
 * `last_message_at` and `consumer_lag`. Programs in many languages write them, so times may be RFC 3339 texts
 * or numbers of seconds or milliseconds, and a status that is unknown here is of a worker that runs.
 */
import { systemNamespace } from '../../../core/items/queue.ts'
import { isStorableText } from '../../../core/text/storable-text.ts'
import type { Instant } from '../../../core/time/instant.ts'
import { type Heartbeat, type WorkerStatus, workerStatuses } from '../../../core/watching/worker.ts'

export const redisKeyPrefix = 'worker:'
const nameLengthMax = 200

/** Undefined: the key or its value is not a heartbeat. */
export function decodeHeartbeat(key: string, value: string, receivedAt: Instant): Heartbeat | undefined {
  const names = /^worker:([^:]+):(.+)$/s.exec(key)
  const [, type = '', instanceId = ''] = names ?? []
  if (names === null || !isName(type) || !isName(instanceId)) return undefined
  const fields = parseObject(value)
  if (fields === undefined) return undefined
  const sentAt = readTime(fields.timestamp)
  // Without its time, a heartbeat looks like the one before it.
  if (sentAt === undefined || sentAt === null) return undefined
  const lastMessageAt = readTime(fields.last_message_at)
  return {
    namespace: systemNamespace,
    type,
    instanceId,
    source: 'redis',
    status: readStatus(fields.status),
    receivedAt,
    sentAt,
    ...(lastMessageAt !== undefined && { lastMessageAt }),
    lag: readLag(fields.consumer_lag),
  }
}

function isName(text: string): boolean {
  return text.length <= nameLengthMax && isStorableText(text) && !/\p{Cc}/u.test(text)
}

type Fields = Readonly<Partial<Record<'timestamp' | 'status' | 'last_message_at' | 'consumer_lag', unknown>>>

function parseObject(value: string): Fields | undefined {
  try {
    const parsed: unknown = JSON.parse(value)
    const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
    return isObject ? (parsed as Fields) : undefined
  } catch {
    return undefined
  }
}

function readStatus(value: unknown): WorkerStatus {
  return workerStatuses.find((status) => status === value) ?? 'RUNNING'
}

/** Larger numbers are milliseconds: as seconds they would be after the year 5000. */
const secondsMax = 1e11
const msMax = 8e12

/** Null: the value is null. Undefined: there is no value, or it is no time. */
function readTime(value: unknown): Instant | null | undefined {
  if (value === null) return null
  const ms =
    typeof value === 'number'
      ? Math.abs(value) < secondsMax
        ? value * 1_000
        : value
      : typeof value === 'string' && value.length <= 64
        ? Date.parse(value)
        : Number.NaN
  return Math.abs(ms) <= msMax ? Math.round(ms * 1_000) : undefined
}

function readLag(value: unknown): number | null {
  if (typeof value !== 'number' || !(value >= 0)) return null
  return Math.min(Math.round(value), Number.MAX_SAFE_INTEGER)
}

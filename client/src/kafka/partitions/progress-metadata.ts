/**
 * The text that a worker commits beside an offset. Kafka keeps this text with the offset, so it survives
 * crashes and rebalances, and changes in the same step as the offset.
 */
import { type Attempts, noAttempts } from './attempts.ts'

export type Progress = Readonly<{
  /** The next record to process. */
  offset: number
  /**
   * A worker processes records behind the offset without writing each attempt. Another worker that finds this
   * mark knows that the last one crashed, and that one of the next records may be the reason.
   */
  isRunning: boolean
  /** Redrive stores records of this partition. */
  hasParked: boolean
  /** The attempts of the record at the offset. */
  attempts: Attempts
}>

const version = 1
/** Kafka accepts 4,096 bytes by default. */
const nameMax = 100
const messageMax = 400

export function toMetadata({ isRunning, hasParked, attempts }: Omit<Progress, 'offset'>): string {
  const marks = { v: version, r: isRunning ? 1 : 0, p: hasParked ? 1 : 0 }
  if (attempts.started === 0) return JSON.stringify(marks)
  const { started, failed, firstFailedAtMs, lastFailedAtMs, error, isPermanent } = attempts
  const e = error === null ? null : [error.name.slice(0, nameMax), error.message.slice(0, messageMax)]
  const fields = { s: started, f: failed, t: firstFailedAtMs, l: lastFailedAtMs, e, d: isPermanent ? 1 : 0 }
  // Only ASCII: a letter of UTF-8 can take four bytes, and the limit counts bytes.
  return JSON.stringify({ ...marks, ...fields }).replaceAll(/[^\x20-\x7e]/g, '?')
}

/** Null: the text is not from this worker, for example because a tool has set the offset. */
export function readMetadata(text: string | null): Omit<Progress, 'offset'> | null {
  const json = parse(text ?? '')
  if (json === null || json.v !== version) return null
  const attempts = { ...noAttempts, ...(toCount(json.s) > 0 && readAttempts(json)) }
  return { isRunning: json.r === 1, hasParked: json.p === 1, attempts }
}

function readAttempts(json: Readonly<Record<string, unknown>>): Attempts {
  const [name, message] = Array.isArray(json.e) ? json.e : []
  return {
    started: toCount(json.s),
    failed: toCount(json.f),
    firstFailedAtMs: toCount(json.t),
    lastFailedAtMs: toCount(json.l),
    error: typeof name === 'string' ? { name, message: String(message ?? ''), stack: '' } : null,
    isPermanent: json.d === 1,
  }
}

function parse(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const json: unknown = JSON.parse(text)
    return typeof json === 'object' && json !== null ? (json as Record<string, unknown>) : null
  } catch {
    return null
  }
}

function toCount(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0
}

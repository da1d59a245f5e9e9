/** Decides what happens to a notification after an attempt to send it. */
import { addDuration, type Instant, usPerSecond } from '../../time/instant.ts'
import { parseRetryAfter } from '../../webhook/delivery/retry-after.ts'

/**
 * The result of an attempt. `isPermanent`: no retry can help. `retryAfter`: the header of this name, or the
 * same information of the service in seconds. `response`: the first bytes of the answer.
 */
export type SendResult = Readonly<{ latencyMs: number; status: number | null }> &
  (
    | Readonly<{
        isDelivered: true
        /** Recipients of an e-mail that the server refused. */
        refused?: readonly string[]
        /** The refused recipients that it may accept later. */
        remaining?: readonly string[]
      }>
    | Readonly<{
        isDelivered: false
        isPermanent: boolean
        retryAfter: string | null
        errorCode: string
        errorClass: string
        message: string
        response: string | null
      }>
  )
export type FailedSend = Extract<SendResult, { isDelivered: false }>

export type DeliveryRules = Readonly<{
  /** A notification that is older than this is given up when an attempt fails. */
  giveUpUs: number
}>

export type DeliveryDecision = Readonly<{ kind: 'retry'; availableAt: Instant } | { kind: 'dead' }>

const delayUsMin = 2 * usPerSecond
const delayUsMax = 300 * usPerSecond
const retryAfterUsMax = 3_600 * usPerSecond
const jitter = 0.1

/**
 * The delay is the age of the notification, so that it doubles with each attempt. The attempts of the item
 * are not counted: it is also returned when it has to wait for an older one. `chance`: in [0, 1).
 */
export function decideDelivery(
  failed: Pick<FailedSend, 'isPermanent' | 'retryAfter'>,
  queuedAt: Instant,
  rules: DeliveryRules,
  chance: number,
  now: Instant,
): DeliveryDecision {
  if (failed.isPermanent) return { kind: 'dead' }
  const ageUs = Math.max(0, now - queuedAt)
  const delayUs = Math.min(Math.max(ageUs, delayUsMin), delayUsMax)
  const backoff = addDuration(now, delayUs * (1 + jitter * (2 * chance - 1)))
  const asked = parseRetryAfter(failed.retryAfter, now, retryAfterUsMax)
  const availableAt = Math.max(backoff, asked ?? 0)
  return availableAt - queuedAt > rules.giveUpUs ? { kind: 'dead' } : { kind: 'retry', availableAt }
}

/** Whether no retry can help against this HTTP status. */
export function isPermanentStatus(status: number): boolean {
  return status >= 400 && status < 500 && ![408, 425, 429].includes(status)
}

/** Sends the HTTP requests of a notification one after the other, up to the first failure. */
import { isPermanentStatus, type SendResult } from '../../../core/alerts/delivery/decide-delivery.ts'
import type { ChannelRequest } from '../../../core/alerts/delivery/to-requests.ts'
import type { FailedAttempt, ResponseBody } from '../../../core/webhook/attempt.ts'
import type { Sender } from '../../webhook/push/sender.ts'

/** `timeoutMs`: of one request. `totalMs`: of all requests together. */
export async function sendRequests(
  sender: Pick<Sender, 'send'>,
  requests: readonly ChannelRequest[],
  { timeoutMs, totalMs }: Readonly<{ timeoutMs: number; totalMs: number }>,
): Promise<SendResult> {
  const endMs = performance.now() + totalMs
  let latencyMs = 0
  let status: number | null = null
  for (const request of requests) {
    // The last requests of many get the rest of the time.
    const leftMs = Math.max(1, Math.round(endMs - performance.now()))
    const attempt = await sender.send({ ...request, timeoutMs: Math.min(timeoutMs, leftMs) })
    latencyMs += attempt.latencyMs
    status = attempt.status
    if (!attempt.isDelivered) return { ...toFailure(attempt), latencyMs }
  }
  return { isDelivered: true, latencyMs, status }
}

function toFailure({ failure, status, response, latencyMs }: FailedAttempt): SendResult {
  const text = readText(response)
  return {
    isDelivered: false,
    latencyMs,
    status,
    isPermanent: status === null ? failure.kind === 'forbidden-address' : isPermanentStatus(status),
    retryAfter: failure.retryAfter ?? readRetryAfter(text),
    errorCode: failure.errorCode,
    errorClass: failure.errorClass,
    message: failure.message,
    response: text,
  }
}

function readText(response: ResponseBody | null): string | null {
  if (response === null || response.bytes.length === 0) return null
  return new TextDecoder().decode(response.bytes)
}

/** Telegram and Discord have the seconds in the body: `parameters.retry_after` and `retry_after`. */
function readRetryAfter(text: string | null): string | null {
  const [, seconds] = /"retry_after"\s*:\s*(\d{1,6})/.exec(text ?? '') ?? []
  return seconds === undefined ? null : String(Number(seconds) + 1)
}

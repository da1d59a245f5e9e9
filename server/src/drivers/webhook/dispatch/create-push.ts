/** The request of a push. */

import type { Header } from '../../../core/items/item.ts'
import type { Instant } from '../../../core/time/instant.ts'
import type { TraceContext } from '../../../core/trace/trace-context.ts'
import { isTraceHeader, toTraceHeaders } from '../../../core/trace/trace-headers.ts'
import { createPushHeaders } from '../../../core/webhook/push-headers.ts'
import { type SigningSecrets, signPush } from '../../../core/webhook/signature.ts'
import type { Consumer } from '../../../storage/contract/webhooks.ts'
import type { JobMessage } from '../broker/broker.ts'
import type { PushRequest } from '../push/sender.ts'

export type PushFacts = Readonly<{
  consumer: Consumer
  secrets: SigningSecrets | null
  message: JobMessage
  requestId: string
  now: Instant
  timeoutMs: number
  /** The span of this push; undefined: the message is pushed with its own trace. */
  trace?: TraceContext | undefined
}>

export function createPush(
  { consumer, secrets, message, requestId, now, timeoutMs, trace }: PushFacts,
  { tokenHeaderName, userAgent }: Readonly<{ tokenHeaderName: string; userAgent: string }>,
): PushRequest {
  const { payload } = message
  const headers = createPushHeaders({
    contentType: message.contentType,
    messageId: message.messageId,
    priority: message.priority,
    channelId: consumer.channelId,
    consumerId: consumer.id,
    consumerToken: consumer.token,
    tokenHeaderName,
    userAgent,
    requestId,
    metadata: replaceTrace(message.headers, trace).map(toText),
    // The id of the job is the same for every attempt, so a receiver can recognise a repeated push.
    signature:
      secrets === null ? undefined : signPush(secrets, { id: message.jobId, sentAt: now, body: payload }),
  })
  return { url: consumer.callbackUrl, headers, body: payload, timeoutMs }
}

/** A span that is not sampled continues a trace, but does not start one. */
function replaceTrace(headers: readonly Header[], trace: TraceContext | undefined): readonly Header[] {
  if (trace === undefined) return headers
  const others = headers.filter(([name]) => !isTraceHeader(name))
  return trace.isSampled || others.length < headers.length ? [...others, ...toTraceHeaders(trace)] : headers
}

/** As Node received it: one character for each byte. */
function toText([name, value]: Header): readonly [string, string] {
  return [name, value === null ? '' : Buffer.from(value).toString('latin1')]
}

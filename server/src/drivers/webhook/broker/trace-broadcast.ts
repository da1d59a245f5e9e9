import { addToHeaders, readTraceHeaders, toTraceHeaders } from '../../../core/trace/trace-headers.ts'
import type { Tracing } from '../../../core/trace/tracing.ts'
import type { AcceptResult } from '../../../storage/contract/webhooks.ts'
import type { NewBroadcast, WebhookBroker } from './broker.ts'

type Broadcast = WebhookBroker['broadcast']

/** Stores the trace of the producer with the message, and creates a span if tracing is configured. */
export function traceBroadcasts(broadcast: Broadcast, tracing: Tracing | undefined): Broadcast {
  if (tracing !== undefined) return (message) => broadcastWithSpan(broadcast, tracing, message)
  return (message) => {
    const { trace } = message
    if (trace === undefined) return broadcast(message)
    return broadcast({ ...message, headers: addToHeaders(message.headers, toTraceHeaders(trace)) })
  }
}

async function broadcastWithSpan(
  broadcast: Broadcast,
  tracing: Tracing,
  message: NewBroadcast,
): Promise<AcceptResult> {
  const { channelId: destination, id, trace: parent } = message
  const links = [readTraceHeaders(message.headers)]
  const span = tracing.start({ operation: 'produce', destination, parent, links })
  const isPassedOn = span.context.isSampled || parent !== undefined
  const headers = isPassedOn ? addToHeaders(message.headers, toTraceHeaders(span.context)) : message.headers
  try {
    const result = await broadcast({ ...message, headers })
    const refusal = result.isAccepted ? undefined : result.refusal
    span.end({ ids: [id], ...(refusal !== undefined && { error: new Error(refusal) }) })
    return result
  } catch (error) {
    span.end({ ids: [id], error })
    throw error
  }
}

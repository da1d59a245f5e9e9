/** The Queue API (`/v1/…`): every call is a POST with a JSON body. */
import type { Answer, Caller, CallOptions } from '../http/caller.ts'

/** The trace of the caller (W3C Trace Context), for items without one. The server ignores an invalid one. */
export type TraceOptions = Readonly<{ traceparent?: string; tracestate?: string }>

export type ProduceOptions = CallOptions &
  TraceOptions &
  Readonly<{
    /** Repeats the call also if the answer is lost: the items are stored at least once, perhaps twice. */
    isDuplicateAllowed?: boolean
  }>

type MaybeTrace = { [Name in keyof TraceOptions]: string | undefined }

export function toTraceHeaders({ traceparent, tracestate }: MaybeTrace): Record<string, string> {
  return {
    ...(traceparent !== undefined && { traceparent }),
    ...(tracestate !== undefined && { tracestate }),
  }
}

type Body = Readonly<Record<string, unknown>>

export type QueueApi = Readonly<{
  /** For calls that are harmless if executed twice: repeated also if the answer is lost. */
  call(path: string, body: Body, options?: CallOptions): Promise<Answer>
  /** For calls that must not be executed twice: repeated after a lost answer only if the caller allows it. */
  callOnce(path: string, body: Body, options?: ProduceOptions): Promise<Answer>
}>

export function createQueueApi(call: Caller): QueueApi {
  return {
    call: (path, body, options) =>
      call({ method: 'POST', path: `/v1/${path}`, body, isRepeatable: true }, options),
    callOnce: (path, body, { isDuplicateAllowed = false, traceparent, tracestate, ...options } = {}) => {
      const headers = toTraceHeaders({ traceparent, tracestate })
      const request = { method: 'POST', path: `/v1/${path}`, body, headers } as const
      return call({ ...request, isRepeatable: isDuplicateAllowed }, options)
    },
  }
}

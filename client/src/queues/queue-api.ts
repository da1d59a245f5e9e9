/** The Queue API (`/v1/…`): every call is a POST with a JSON body. */
import type { Answer, Caller, CallOptions } from '../http/caller.ts'

export type ProduceOptions = CallOptions &
  Readonly<{
    /** Repeats the call also if the answer is lost: the items are stored at least once, perhaps twice. */
    isDuplicateAllowed?: boolean
  }>

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
    callOnce: (path, body, { isDuplicateAllowed = false, ...options } = {}) =>
      call({ method: 'POST', path: `/v1/${path}`, body, isRepeatable: isDuplicateAllowed }, options),
  }
}

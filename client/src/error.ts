export type RedriveErrorFacts = Readonly<{
  code: string
  status: number
  message: string
  hint: string
  requestId?: string
  details?: readonly Readonly<{ field: string; message: string }>[]
  itemId?: string | null
  isRetryable?: boolean
  isOutcomeUnknown?: boolean
  cause?: unknown
}>

/** The server said no, or could not be asked. */
export class RedriveError extends Error {
  /**
   * One of the codes in docs/errors.md, or what only a client can tell: `CONNECTION_REFUSED`,
   * `CONNECTION_LOST`, `ANSWER_TIMEOUT`, and `UNKNOWN` when the answer did not come from Redrive.
   */
  readonly code: string
  /** Of the HTTP answer; 0 when there was none. */
  readonly status: number
  readonly hint: string
  /** Stands in the server's log too. */
  readonly requestId: string
  readonly details: readonly Readonly<{ field: string; message: string }>[]
  /** The item because of which the server refused the call, when it named one. */
  readonly itemId: string | null
  /** The same call may be made again without harm, and can succeed then. */
  readonly isRetryable: boolean
  /** An answer was lost on its way: what was asked for may have been done. */
  readonly isOutcomeUnknown: boolean

  constructor(facts: RedriveErrorFacts) {
    super(facts.message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.name = 'RedriveError'
    this.code = facts.code
    this.status = facts.status
    this.hint = facts.hint
    this.requestId = facts.requestId ?? ''
    this.details = facts.details ?? []
    this.itemId = facts.itemId ?? null
    this.isRetryable = facts.isRetryable ?? false
    this.isOutcomeUnknown = facts.isOutcomeUnknown ?? false
  }
}

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

/** The server rejected the call, or could not be reached. */
export class RedriveError extends Error {
  /**
   * One of the codes in docs/errors.md, or a code that only the client uses: `CONNECTION_REFUSED`,
   * `CONNECTION_LOST`, `ANSWER_TIMEOUT`, and `UNKNOWN` if the answer did not come from Redrive.
   */
  readonly code: string
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number
  readonly hint: string
  /** The server's log has the same id. */
  readonly requestId: string
  readonly details: readonly Readonly<{ field: string; message: string }>[]
  /** The item that made the server reject the call, if the answer names one. */
  readonly itemId: string | null
  /** Repeating the same call is safe and can succeed. */
  readonly isRetryable: boolean
  /** An answer was lost, so the server may have executed the call. */
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

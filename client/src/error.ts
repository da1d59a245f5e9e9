import type { ErrorBody } from './wire.ts'

/** The server answered, and said no. */
export class RedriveError extends Error {
  /** One of the codes in docs/errors.md; `UNKNOWN` when the answer did not come from Redrive. */
  readonly code: string
  readonly status: number
  readonly hint: string
  /** Stands in the server's log too. */
  readonly requestId: string
  readonly details: readonly Readonly<{ field: string; message: string }>[]

  constructor(status: number, body: unknown, requestId: string) {
    const said = isErrorBody(body) ? body.error : undefined
    super(said?.message ?? `the server answered with status ${status}`)
    this.name = 'RedriveError'
    this.code = said?.code ?? 'UNKNOWN'
    this.status = status
    this.hint = said?.hint ?? 'Something between you and Redrive may have answered in its place.'
    this.requestId = said?.request_id ?? requestId
    this.details = said?.details ?? []
  }
}

function isErrorBody(body: unknown): body is ErrorBody {
  if (typeof body !== 'object' || body === null || !('error' in body)) return false
  const { error } = body
  return typeof error === 'object' && error !== null && 'code' in error && 'message' in error
}

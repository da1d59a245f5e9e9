import { type ErrorCode, KnownError } from '../../../errors.ts'

/** All statuses of this dialect, each with its text. */
export const statusTexts = {
  200: 'OK',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  429: 'Too Many Requests',
  453: 'Request Failed',
  454: 'Retry Request',
  455: 'Client Content Error',
  500: 'Internal Service Error',
  501: 'Not Implemented',
} as const

export type WireStatus = keyof typeof statusTexts

/** An error whose status and message are fixed by the contract and are sent unchanged. */
export class Fault extends KnownError {
  readonly wireStatus: WireStatus

  constructor(wireStatus: WireStatus, message: string, code: ErrorCode = 'BAD_REQUEST', cause?: unknown) {
    super(code, message, cause)
    this.name = 'Fault'
    this.wireStatus = wireStatus
  }
}

export function createBadRequest(message: string): Fault {
  return new Fault(400, message)
}

/** For a body, a Content-Type or an Accept header that the server cannot process. */
export function createContentError(message: string, cause?: unknown): KnownError {
  return new KnownError('CONTENT_UNREADABLE', message, cause)
}

import { type ErrorCode, KnownError } from '../../../errors.ts'

/** The statuses of this dialect with the text that goes with each. There are no others. */
export const statusTexts = {
  200: 'OK',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  453: 'Request Failed',
  454: 'Retry Request',
  455: 'Client Content Error',
  500: 'Internal Service Error',
  501: 'Not Implemented',
} as const

export type WireStatus = keyof typeof statusTexts

/** An error whose status and words are the contract's own: sent as they stand. */
export class Fault extends KnownError {
  readonly wireStatus: WireStatus

  constructor(wireStatus: WireStatus, message: string, code: ErrorCode = 'BAD_REQUEST', cause?: unknown) {
    super(code, message, cause)
    this.name = 'Fault'
    this.wireStatus = wireStatus
  }
}

export function badRequest(message: string): Fault {
  return new Fault(400, message)
}

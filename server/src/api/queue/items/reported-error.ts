import { isUtf8 } from 'node:buffer'
import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { errorClassMax, failureReasonMax, fingerprintMax } from '../../../core/dead-letters/failure-bounds.ts'
import type { RetryRequest } from '../../../core/items/transitions.ts'
import { createBadRequest } from '../protocol/fault.ts'

/**
 * The failure of the items of a retry call, from the header `X-Redrive-Error`. It is a header and not a
 * field, because clients of the protocol refuse messages with unknown fields.
 */
export type ReportedError = NonNullable<RetryRequest['error']>

const ErrorHeader = Type.Object(
  {
    error_class: Type.Optional(Type.String({ maxLength: errorClassMax })),
    message: Type.Optional(Type.String()),
    stack: Type.Optional(Type.String()),
    error_code: Type.Optional(Type.String({ minLength: 1, maxLength: failureReasonMax })),
    fingerprint: Type.Optional(Type.String({ minLength: 1, maxLength: fingerprintMax })),
  },
  { additionalProperties: false },
)
const check = Compile(ErrorHeader)

const headerBytesMax = 8_192

/** The header in OpenAPI. */
export const reportedErrorHeader = Type.Object({
  'X-Redrive-Error': Type.Optional(
    Type.String({
      maxLength: headerBytesMax,
      contentMediaType: 'application/json',
      description:
        'Why the items of this call failed: a JSON object with any of error_class, message, stack, error_code ' +
        'and fingerprint (your own name of the cause, which decides the group). It becomes the failure of the dead letter. Write other than ASCII characters as UTF-8 or \\uXXXX.',
      examples: ['{"error_class":"CardRefused","message":"no funds","error_code":"refused"}'],
    }),
  ),
})

export function readReportedError(header: string | readonly string[] | undefined): ReportedError | null {
  if (header === undefined) return null
  const text = String(header)
  if (text.length > headerBytesMax) {
    throw createBadRequest(
      `X-Redrive-Error is invalid; cannot be greater than '${headerBytesMax}' characters`,
    )
  }
  const { error_class, message, stack, error_code, fingerprint } = parseHeader(text)
  return {
    ...(error_code !== undefined && { errorCode: error_code }),
    ...(error_class !== undefined && { errorClass: error_class }),
    ...(message !== undefined && { message }),
    ...(stack !== undefined && { stack }),
    ...(fingerprint !== undefined && { fingerprint }),
  }
}

function parseHeader(header: string): Static<typeof ErrorHeader> {
  // Node decodes headers as latin1. Bytes that are valid UTF-8 are decoded as UTF-8 instead.
  const bytes = Buffer.from(header, 'latin1')
  let value: unknown
  try {
    value = JSON.parse(isUtf8(bytes) ? bytes.toString('utf8') : header)
  } catch {
    throw createBadRequest('X-Redrive-Error is invalid; it is not valid JSON')
  }
  if (!check.Check(value)) {
    throw createBadRequest(
      'X-Redrive-Error is invalid; it can have only error_class, message, stack, error_code and fingerprint, all of them texts',
    )
  }
  return value
}

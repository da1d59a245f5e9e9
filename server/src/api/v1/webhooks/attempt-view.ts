/** An attempt to push a job, in answers. */
import { Buffer, isUtf8 } from 'node:buffer'
import { type Static, Type } from 'typebox'
import { usPerMs } from '../../../core/time/instant.ts'
import type { StoredAttempt } from '../../../storage/contract/deliveries.ts'
import { component } from '../../http/openapi/annotations.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { nullable } from '../values/schemas.ts'

export const AttemptView = component(
  'DeliveryAttempt',
  Type.Object({
    job_id: Type.String({ description: 'Id of the job; empty: a test push.' }),
    attempt: Type.Integer({
      description: 'Ordinal of the attempt since the job was created or redriven, from 1.',
    }),
    started_at: Type.String({ format: 'date-time', description: 'When the push started.' }),
    latency_ms: Type.Number({ description: 'Time until the headers of the answer, or until the failure.' }),
    address: nullable(Type.String(), 'The address that was connected to; null: no connection.'),
    is_delivered: Type.Boolean({ description: 'Whether the receiver answered with a 2xx status.' }),
    http_status: nullable(Type.Integer(), 'The status of the answer; null: no answer.'),
    failure_kind: nullable(
      Type.String(),
      'The layer that failed, such as status, timeout, dns or tls; null: delivered.',
    ),
    error_class: nullable(Type.String(), 'The class of the error, which groups failures; null: delivered.'),
    error_code: nullable(Type.String(), 'The code of the error, such as http_503; null: delivered.'),
    error_message: nullable(Type.String(), 'The error in one sentence; null: delivered.'),
    response: nullable(
      Type.Object({
        content_type: nullable(Type.String(), 'The content type of the answer.'),
        is_truncated: Type.Boolean({ description: 'Whether the body of the answer was longer.' }),
        text: Type.Optional(Type.String({ description: 'The start of the body as text, if it is UTF-8.' })),
        base64: Type.Optional(
          Type.String({ description: 'The start of the body in base64, if it is not UTF-8.' }),
        ),
      }),
      'The first 4 KiB of the answer; null: no answer.',
    ),
  }),
)
export type AttemptView = Static<typeof AttemptView>

export function viewAttempt(attempt: Omit<StoredAttempt, 'number' | 'consumer'>): AttemptView {
  const { failure, status } = attempt
  return {
    job_id: attempt.job,
    attempt: attempt.ordinal,
    started_at: formatInstant(attempt.startedAt),
    latency_ms: attempt.latencyUs / usPerMs,
    address: attempt.address,
    is_delivered: failure === null,
    http_status: status,
    failure_kind: failure?.kind ?? null,
    error_class: failure?.errorClass ?? null,
    error_code: failure?.errorCode ?? null,
    error_message: failure?.message ?? null,
    response: status === null ? null : viewResponse(attempt),
  }
}

function viewResponse({
  body,
  contentType,
  isTruncated,
}: Pick<StoredAttempt, 'body' | 'contentType' | 'isTruncated'>): AttemptView['response'] {
  const bytes = body ?? new Uint8Array()
  const content = isTruncated ? cutCharacter(bytes) : bytes
  const base = { content_type: contentType, is_truncated: isTruncated }
  return isUtf8(content)
    ? { ...base, text: Buffer.from(content).toString() }
    : { ...base, base64: Buffer.from(bytes).toString('base64') }
}

/** The last character of a body that was cut may be incomplete: at most 3 bytes of it are there. */
function cutCharacter(bytes: Uint8Array): Uint8Array {
  for (let cut = 0; cut <= 3 && cut <= bytes.length; cut++) {
    const start = bytes.subarray(0, bytes.length - cut)
    if (isUtf8(start)) return start
  }
  return bytes
}

/** Writes a letter as a message of its topic, as JSON text. */
import { Type } from 'typebox'
import type { Item } from '../../../core/item.ts'
import { hasTooManyValues } from '../../../core/json-values.ts'
import { ksuidToUuid } from '../../../core/ksuid.ts'
import { toLetterStatus } from '../../../ops/letter-status.ts'
import { component, describedWith } from '../../http/openapi/annotations.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'

/** For OpenAPI only: messages are written as text, because the payload is sent unchanged. */
export const Message = component(
  'Message',
  Type.Object({
    id: Type.String({ format: 'uuid', description: 'Id of the letter as a UUID.' }),
    original_topic: Type.String({ description: 'Topic or queue that the letter came from.' }),
    error_message: Type.String({ description: 'Message of the failure, or `unknown error`.' }),
    retry_count: Type.Integer({ description: 'Number of redrives after which the letter failed again.' }),
    max_retries: Type.Integer({ description: 'Redrives that the policy of the dead queue allows.' }),
    payload: Type.Unknown({
      description:
        'The JSON value, or null if the payload is empty. Other text is `{raw_payload}`; bytes that are not UTF-8 ' +
        'are `{raw_payload_base64}`.',
    }),
    status: Type.Enum(['PENDING', 'RETRYING', 'RESOLVED', 'DEAD'], {
      description:
        'PENDING: waits for a redrive; RETRYING: a redrive is in progress; RESOLVED: processed; DEAD: no retries left.',
    }),
    created_at: describedWith(
      { format: 'date-time' },
      Type.String({ description: 'When the item became a dead letter.' }),
    ),
    updated_at: describedWith(
      { format: 'date-time' },
      Type.String({ description: 'When the letter last changed.' }),
    ),
    last_retry_at: Type.Union([describedWith({ format: 'date-time' }, Type.String()), Type.Null()], {
      description: 'When it was last redriven.',
    }),
  }),
)

/** `isOmitted`: the payload was not read, because the page has reached its size limit. */
export function writeMessageText(item: Item, retriesMax: number, isOmitted = false): string {
  const lastRetryAt = item.letter?.lastRedriveAt ?? null
  const head = JSON.stringify({
    id: ksuidToUuid(item.rootId),
    original_topic: item.origin?.name ?? item.queue,
    error_message: item.failure?.message || 'unknown error',
    retry_count: item.redrives,
    max_retries: retriesMax,
  })
  const tail = JSON.stringify({
    status: toLetterStatus(item.state),
    created_at: formatInstant(item.diedAt ?? item.createdAt),
    updated_at: formatInstant(item.updatedAt),
    last_retry_at: lastRetryAt === null ? null : formatInstant(lastRetryAt),
  })
  const payload = isOmitted ? omitted : writePayloadText(item.payload)
  return `${head.slice(0, -1)},"payload":${payload},${tail.slice(1)}`
}

const omitted = JSON.stringify({ is_omitted: true })
const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Returns JSON text unchanged: parsing and writing it again would change long numbers, and would fail for
 * deeply nested values. A text with too many values to be parsed is returned as `raw_payload`.
 */
export function writePayloadText(bytes: Uint8Array): string {
  if (bytes.length === 0) return 'null'
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    // Not UTF-8: all bytes as base64, and a description for clients that only read raw_payload.
    const raw_payload = `${bytes.length} bytes that are not UTF-8`
    return JSON.stringify({ raw_payload, raw_payload_base64: Buffer.from(bytes).toString('base64') })
  }
  try {
    if (hasTooManyValues(bytes)) return JSON.stringify({ raw_payload: text })
    JSON.parse(text)
    return text
  } catch {
    return JSON.stringify({ raw_payload: text })
  }
}

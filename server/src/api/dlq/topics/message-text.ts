/** A letter as a message of its topic, as JSON text. */
import { Type } from 'typebox'
import type { Item } from '../../../core/item.ts'
import { ksuidToUuid } from '../../../core/ksuid.ts'
import { letterStatus } from '../../../ops/letter-status.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'

/** For the description only: messages are written as text, because a payload goes out as it is. */
export const Message = Type.Object({
  id: Type.String({ format: 'uuid' }),
  original_topic: Type.String(),
  error_message: Type.String(),
  retry_count: Type.Integer({ description: 'Redrives that came back.' }),
  max_retries: Type.Integer(),
  payload: Type.Unknown({
    description:
      'The JSON value, null when empty; `{raw_payload}` when it is other text, `{raw_payload_base64}` when it is none.',
  }),
  status: Type.Enum(['PENDING', 'RETRYING', 'RESOLVED', 'DEAD']),
  created_at: Type.String({ description: 'When it became a dead letter.' }),
  updated_at: Type.String(),
  last_retry_at: Type.Union([Type.String(), Type.Null()]),
})

/** `isOmitted`: the payload was not read, because the page has enough of them. */
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
    status: letterStatus(item.state),
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
 * The text itself where it is JSON: read and written again, long numbers would be other ones and a value nested
 * deeply enough could not be written at all.
 */
export function writePayloadText(bytes: Uint8Array): string {
  if (bytes.length === 0) return 'null'
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    // Not UTF-8: shown whole, and in words for those who only look at raw_payload.
    const raw_payload = `${bytes.length} bytes that are not UTF-8`
    return JSON.stringify({ raw_payload, raw_payload_base64: Buffer.from(bytes).toString('base64') })
  }
  try {
    JSON.parse(text)
    return text
  } catch {
    return JSON.stringify({ raw_payload: text })
  }
}

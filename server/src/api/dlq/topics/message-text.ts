/** Writes a letter as a message of its topic, as JSON text. */
import { isUtf8 } from 'node:buffer'
import { Type } from 'typebox'
import { convertToUuid } from '../../../core/ids/ksuid.ts'
import type { Item } from '../../../core/items/item.ts'
import { hasTooManyValues } from '../../../core/text/json-values.ts'
import { toLetterStatus } from '../../../ops/metrics/letter-status.ts'
import { component, describedWith } from '../../http/openapi/annotations.ts'
import {
  LargeBytes,
  largeBytesMin,
  type Part,
  writeJsonParts,
  writeLarge,
} from '../../http/wire/json-parts.ts'
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

/** The facts of a message that its letter does not have. `isOmitted`: the page has reached its size limit. */
export type MessageFacts = Readonly<{
  retriesMax: number
  isOmitted?: boolean
  isJson: (payload: Uint8Array) => Promise<boolean>
}>

/** The parts of a message. A large payload is encoded when it is sent. */
export async function writeMessage(item: Item, facts: MessageFacts): Promise<Iterable<Part>> {
  const lastRetryAt = item.letter?.lastRedriveAt ?? null
  const head = JSON.stringify({
    id: convertToUuid(item.rootId),
    original_topic: item.origin?.name ?? item.queue,
    error_message: item.failure?.message || 'unknown error',
    retry_count: item.retryCount,
    max_retries: facts.retriesMax,
  })
  const tail = JSON.stringify({
    status: toLetterStatus(item.state),
    created_at: formatInstant(item.deadLetteredAt ?? item.createdAt),
    updated_at: formatInstant(item.updatedAt),
    last_retry_at: lastRetryAt === null ? null : formatInstant(lastRetryAt),
  })
  const payload = facts.isOmitted ? [omitted] : await writePayload(item.payload, facts)
  return joinParts(`${head.slice(0, -1)},"payload":`, payload, `,${tail.slice(1)}`)
}

function* joinParts(head: string, payload: Iterable<Part>, tail: string): Generator<Part> {
  yield head
  yield* payload
  yield tail
}

async function writePayload(bytes: Uint8Array, { isJson }: MessageFacts): Promise<Iterable<Part>> {
  if (bytes.length < largeBytesMin) return [writePayloadText(bytes)]
  if (!isUtf8(bytes)) return writeJsonParts(viewOther(bytes, new LargeBytes(bytes, 'base64')))
  if (await isJson(bytes)) return writeLarge(new LargeBytes(bytes, 'json'))
  return writeJsonParts({ raw_payload: new LargeBytes(bytes, 'text') })
}

/** Bytes that are not UTF-8: all bytes as base64, and a text for clients that only read raw_payload. */
function viewOther<Base64>(bytes: Uint8Array, raw_payload_base64: Base64) {
  return { raw_payload: `${bytes.length} bytes that are not UTF-8`, raw_payload_base64 }
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
    return JSON.stringify(viewOther(bytes, Buffer.from(bytes).toString('base64')))
  }
  try {
    if (hasTooManyValues(bytes)) return JSON.stringify({ raw_payload: text })
    JSON.parse(text)
    return text
  } catch {
    return JSON.stringify({ raw_payload: text })
  }
}

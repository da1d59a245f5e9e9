/** The body of a capture: its schema, and the letters that it becomes. */
import { type Static, Type } from 'typebox'
import { historyMax } from '../../../core/items/item.ts'
import { splitElements, splitFields } from '../../../core/text/json-text.ts'
import { isNestedTooDeep, nestingMax } from '../../../core/text/nesting.ts'
import {
  createUndecodedLetter,
  type EnvelopeDefaults,
  envelopeBounds,
  type ReadEnvelope,
  readEnvelope,
} from '../../../letters/envelope/read-envelope.ts'
import type { CapturedLetter } from '../../../letters/letters.ts'
import { createBodyReader } from '../../http/bodies/body-reader.ts'
import { component } from '../../http/openapi/annotations.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { repairedWhenRead } from '../../http/validation/unstorable-text.ts'
import { checkHeaderCount, checkMetadataBytes, checkPayloadBytes } from '../values/content-spec.ts'

const lettersMax = 1_000

const field = (description: string) => Type.Optional(Type.Unknown({ description }))

/** Documentation only: an invalid envelope is captured too, together with its problems. */
export const envelopeFields = {
  source_id: field(
    'The identity at the source: repeated captures with the same source id are one letter of the dead queue. An ' +
      `id of more than ${envelopeBounds.sourceIdMax} characters is shortened to its start and a digest.`,
  ),
  original_topic: field('The topic that the message came from, and that a redrive sends it to.'),
  original_queue: field('The queue of this server that it came from, instead of original_topic.'),
  original_partition: field('The partition: a number.'),
  original_offset: field('The offset: a number, or a text with a number.'),
  original_key: field('The message key: text, {"base64": "…"}, or any JSON.'),
  original_value: field('The payload: text, {"base64": "…"}, or any JSON.'),
  original_key_encoding: field('How original_key is encoded: text, json or base64.'),
  original_value_encoding: field('How original_value is encoded: text, json or base64.'),
  original_id: field('The id at the source, for messages without an offset.'),
  original_timestamp: field('When the message was created at its source, as an RFC 3339 time.'),
  cluster: field(
    'The Kafka cluster of original_topic. With a cluster, a queue with the name of the topic is not a target.',
  ),
  headers: field('{"name": "value"}, or [["name", "value"]] to keep order and repeated names.'),
  error_details: field(
    'The error: {"exception_class", "message", "stack_trace", "code", "fingerprint"}. fingerprint is your own name of the cause, which decides the group.',
  ),
  error_code: field(
    'A short code of the failure. Default: code of error_details, or derived from the exception class.',
  ),
  retry_count: field('Number of attempts before the message died.'),
  worker_instance: field('The worker of the last attempt.'),
  consumer_group: field('The Kafka consumer group of the worker.'),
  first_failure_at: field('When the first attempt failed, as an RFC 3339 time.'),
  last_failure_at: field('When the last attempt failed, as an RFC 3339 time.'),
  dead_lettered_at: field('When the message died, as an RFC 3339 time. Default: now.'),
  history: field(`Earlier failures in any order. The newest ${historyMax} by failed_at are kept.`),
}

const Envelope = component(
  'Envelope',
  Type.Unknown({
    ...repairedWhenRead,
    description:
      'An envelope. An invalid envelope is captured too: the payload is then the envelope itself, and the failure ' +
      'describes the problem.',
    properties: envelopeFields,
  }),
)

export const CaptureBody = Type.Object(
  {
    queue: Type.String({
      minLength: 1,
      maxLength: 512,
      description: 'The dead queue, which must exist.',
    }),
    letters: Type.Array(Envelope, { minItems: 1, description: `The letters, at most ${lettersMax}.` }),
  },
  { additionalProperties: false },
)

/** The letters of a request, each with the problems of its envelope. */
export type CaptureRequest = Readonly<{ queue: string; letters: readonly ReadEnvelope[] }>

export const captureBodyReader = createBodyReader(
  'letters.capture',
  CaptureBody,
  ({ body, text }, { now }): CaptureRequest => {
    checkCount(body)
    const { queue, letters } = body
    const texts = splitElements(new Map(splitFields(text)).get('letters') ?? '[]')
    const defaults = { origin: queue, now }
    const read = letters.map((envelope, index) => {
      const own = texts[index] ?? ''
      return isNestedTooDeep(envelope)
        ? captureUnread(envelope, own, defaults)
        : readEnvelope(envelope, own, defaults)
    })
    checkHeaderCount(
      'body.letters',
      read.map(({ letter }) => letter),
    )
    for (const [index, { letter }] of read.entries()) checkLetter(letter, index)
    return { queue, letters: read }
  },
)

function checkCount({ letters }: Static<typeof CaptureBody>): void {
  if (letters.length <= lettersMax) return
  const message = `has ${letters.length} letters; at most ${lettersMax} are allowed`
  throw new InvalidRequest([{ field: 'body.letters', message }])
}

function checkLetter({ payload, key, headers }: CapturedLetter, index: number): void {
  const field = `body.letters[${index}]`
  checkPayloadBytes(`${field}.original_value`, payload)
  checkMetadataBytes(field, key, headers)
}

/**
 * Captures an envelope that is nested too deep to be read: its text is the payload, and only source_id is
 * read.
 */
function captureUnread(envelope: unknown, text: string, defaults: EnvelopeDefaults): ReadEnvelope {
  const sourceId = (envelope as Readonly<{ source_id?: unknown }>).source_id
  const named = typeof sourceId === 'string' ? { source_id: sourceId } : {}
  const { letter } = readEnvelope(named, JSON.stringify(named), defaults)
  const problem = `it is nested deeper than ${nestingMax} levels`
  const kept = createUndecodedLetter(new TextEncoder().encode(text), problem, defaults)
  return { ...kept, letter: { ...kept.letter, sourceId: letter.sourceId } }
}

/** Letters that died elsewhere: whoever could not process something sends it here. */
import { Type } from 'typebox'
import { historyMax } from '../../../core/item.ts'
import { elementTexts, fieldTexts } from '../../../core/json-text.ts'
import {
  type EnvelopeDefaults,
  envelopeBounds,
  type ReadEnvelope,
  readEnvelope,
  undecodedLetter,
} from '../../../letters/envelope/read-envelope.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { repairedWhenRead } from '../../http/validation/unstorable-text.ts'
import { readJsonText } from '../../http/wire/parse-json.ts'
import { v1 } from '../dialect.ts'
import { isNestedTooDeep, nestingMax } from '../values/nesting.ts'

export const capturedMax = 1_000

const text = (description: string) => Type.Optional(Type.Unknown({ description }))

/** Only described: what is wrong with an envelope is captured with it. */
const Envelope = Type.Unknown({
  ...repairedWhenRead,
  description: `An envelope. Whatever is wrong in it, it is captured: then the envelope itself is the payload, and the failure says what could not be read.`,
  properties: {
    source_id: text(
      `What it is elsewhere: the same one in the same dead queue is one letter, however often it is sent. Of more than ${envelopeBounds.sourceIdMax} characters the beginning and a digest are kept.`,
    ),
    original_topic: text('Where it came from, and where a redrive sends it.'),
    original_queue: text('Instead of original_topic: a queue of this server.'),
    original_partition: text('A number.'),
    original_offset: text('A number, or its text.'),
    original_key: text('Text, {"base64": "…"}, or any JSON.'),
    original_value: text('The payload: text, {"base64": "…"}, or any JSON.'),
    original_key_encoding: text('text, json or base64, where the key does not say it itself.'),
    original_value_encoding: text('text, json or base64, where the value does not say it itself.'),
    original_id: text('Its id where it came from, when it has no offset.'),
    original_timestamp: text('When it was made. RFC 3339.'),
    cluster: text('Of original_topic. What names one is never sent to a queue of that name.'),
    headers: text('{"name": "value"}, or [["name", "value"]] where order and repeats matter.'),
    error_details: text('{"exception_class", "message", "stack_trace", "code"}'),
    reason: text('A code for why; by default that of error_details, or from the exception class.'),
    retry_count: text('Attempts before it died.'),
    worker_instance: text('Who tried last.'),
    consumer_group: text('Whose worker that was.'),
    first_failure_at: text('RFC 3339.'),
    last_failure_at: text('RFC 3339.'),
    dead_lettered_at: text('RFC 3339; by default now.'),
    history: text(
      `Earlier failures, in any order: they are kept newest first, by failed_at, and of more than ${historyMax} the newest.`,
    ),
  },
})

export const captureRoutes = [
  route({
    method: 'POST',
    path: '/api/v1/letters',
    permission: 'letter.capture',
    summary: 'Captures dead letters. One whose source_id is in the dead queue already stays as it is.',
    tag: 'letters',
    dialect: v1,
    schema: {
      body: Type.Object(
        {
          queue: Type.String({
            minLength: 1,
            maxLength: 512,
            description: 'The dead queue; it must be there.',
          }),
          letters: Type.Array(Envelope, { minItems: 1, description: `At most ${capturedMax}.` }),
        },
        { additionalProperties: false },
      ),
      response: {
        200: Type.Object({
          letters: Type.Array(
            Type.Object({
              id: Type.String(),
              is_new: Type.Boolean({ description: 'False: it was there already, perhaps discarded.' }),
              problems: Type.Array(Type.String(), {
                description:
                  'What of its envelope could not be read, is unknown, or could not be kept as it was sent.',
              }),
            }),
            { description: 'One per envelope, in order.' },
          ),
        }),
      },
    },
    handler: async ({ body }, _reply, context) => {
      const { queue, letters } = body
      if (letters.length > capturedMax) {
        const message = `has ${letters.length} letters; ${capturedMax} can be captured at once`
        throw new InvalidRequest([{ field: 'body.letters', message }])
      }
      const now = context.clock.now()
      const texts = elementTexts(new Map(fieldTexts(readJsonText(body))).get('letters') ?? '[]')
      const defaults = { origin: queue, now }
      const read = letters.map((envelope, index) => {
        const written = texts[index] ?? ''
        return isNestedTooDeep(envelope)
          ? readDeep(envelope, written, defaults)
          : readEnvelope(envelope, written, defaults)
      })
      const captured = await context.letters().capture(
        queue,
        read.map(({ letter }) => letter),
      )
      return {
        letters: captured.map(({ letterId, isNew }, index) => ({
          id: letterId,
          is_new: isNew,
          problems: [...(read[index]?.problems ?? [])],
        })),
      }
    },
  }),
]

/** Nothing walks through it: it is kept as it was written, under the source id that it names. */
function readDeep(envelope: unknown, written: string, defaults: EnvelopeDefaults): ReadEnvelope {
  const sourceId = (envelope as Readonly<{ source_id?: unknown }>).source_id
  const named = typeof sourceId === 'string' ? { source_id: sourceId } : {}
  const { letter } = readEnvelope(named, JSON.stringify(named), defaults)
  const problem = `it is nested deeper than ${nestingMax} levels`
  const kept = undecodedLetter(new TextEncoder().encode(written), problem, defaults)
  return { ...kept, letter: { ...kept.letter, sourceId: letter.sourceId } }
}

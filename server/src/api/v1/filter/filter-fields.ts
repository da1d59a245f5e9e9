/**
 * The conditions that select letters. The list, the export, the counts, the groups and campaigns use the same
 * names. A query repeats a parameter for several values; a body may have a list.
 */
import { type Static, type TProperties, Type } from 'typebox'
import { letterStatuses } from '../../../ops/metrics/letter-status.ts'
import { component, describedWith } from '../../http/openapi/annotations.ts'
import { storedAsBytes } from '../../http/validation/unstorable-text.ts'

const valuesMax = 100

export function oneOrMore(
  description: string,
  lengthMax = 512,
  lengthMin = 1,
  keywords: Readonly<Record<string, unknown>> = {},
) {
  const text = describedWith(keywords, Type.String({ minLength: lengthMin, maxLength: lengthMax }))
  return Type.Optional(
    Type.Union([text, Type.Array(text, { minItems: 1, maxItems: valuesMax })], {
      description: `${description} With several values: any of them.`,
    }),
  )
}

function timeBound(event: string, bound: 'from' | 'until') {
  const examples = ['2026-01-02T03:04:05Z']
  const description = `${event} at or ${bound === 'from' ? 'after' : 'before'} this RFC 3339 time.`
  return Type.Optional(
    describedWith({ format: 'date-time' }, Type.String({ maxLength: 64, description, examples })),
  )
}

const groupId = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
const retryCount = { minimum: 0, maximum: 1_000_000 }

/** Conditions that the counts contain: their totals are exact and need no search. */
export const countedFields = {
  queue: oneOrMore('Letters in this dead queue.'),
  namespace: oneOrMore('Letters in queues of this namespace.', 256),
  letter_class: oneOrMore('Letters in dead queues of this class.'),
  status: oneOrMore(`Letters with this status: ${letterStatuses.join(', ')}.`, 32, 1, {
    enum: letterStatuses,
  }),
  error_code: oneOrMore('Letters whose failure has exactly this code.'),
  slug: oneOrMore('Letters whose message has this short form, such as http_503.'),
  error_class: oneOrMore('Letters with exactly this error class; empty: without an error class.', 512, 0),
  group_id: Type.Optional(
    Type.Union([groupId, Type.Array(groupId, { minItems: 1, maxItems: valuesMax })], {
      description: 'Letters in this group. With several values: any of them.',
    }),
  ),
  cause_id: oneOrMore('Letters with this cause, in all dead queues.', 64),
  origin: oneOrMore('Letters that came from this queue, topic, or channel and consumer.'),
  retry_count_min: Type.Optional(
    Type.Integer({ ...retryCount, description: 'Letters with at least this number of failed redrives.' }),
  ),
  retry_count_max: Type.Optional(
    Type.Integer({ ...retryCount, description: 'Letters with at most this number of failed redrives.' }),
  ),
} satisfies TProperties

/** Conditions that find single letters. */
const idFields = {
  id: oneOrMore(
    'Letters that have or had this id: the letter id or its UUID, the id that produce answered, an id before a ' +
      'retry, the source id, or the id of a redrive.',
    1_024,
  ),
  source_id: oneOrMore('Letters with exactly this source id.', 1_024),
  reference: oneOrMore('Letters with exactly this reference.', 1_024),
  trace_id: oneOrMore('Letters whose header traceparent has this trace id: 32 hexadecimal digits.', 32),
  payload_contains: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1_000,
      description:
        'Letters whose payload contains this text, in any case, within its first 1 MiB. The search is ' +
        'progressive: continue with next_cursor while is_complete is false.',
    }),
  ),
} satisfies TProperties

/** Conditions that need an index or a search. */
export const searchedFields = {
  ...idFields,
  dead_lettered_from: timeBound('Letters that died', 'from'),
  dead_lettered_until: timeBound('Letters that died', 'until'),
  updated_from: timeBound('Letters that last changed', 'from'),
  updated_until: timeBound('Letters that last changed', 'until'),
  last_failed_from: timeBound('Letters that last failed', 'from'),
  last_failed_until: timeBound('Letters that last failed', 'until'),
  key_text: Type.Optional(
    Type.String({ ...storedAsBytes, maxLength: 10_000, description: 'Letters with this key, as text.' }),
  ),
  key_base64: Type.Optional(
    describedWith(
      { contentEncoding: 'base64' },
      Type.String({ maxLength: 14_000, description: 'Letters with this key, as bytes in base64.' }),
    ),
  ),
  message: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1_000,
      description: 'Letters whose error message contains this text, in any case.',
    }),
  ),
  header: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 4_000,
      description: 'Letters with this header: `name`, or `name=value`.',
    }),
  ),
  json: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 4_000,
      description:
        'Letters whose JSON payload has this value at this path: `$.order.lines[0]["unit price"]=12`. The value ' +
        'is a number, true, false, null, a text in double quotes, or any other text without quotes.',
      examples: ['$.customer.id=4711'],
    }),
  ),
} satisfies TProperties

export const filterFields = { ...countedFields, ...searchedFields }

/** Conditions for the archive: most of the above, and some of its own. */
export const archiveFields = {
  ...countedFields,
  dead_lettered_from: searchedFields.dead_lettered_from,
  dead_lettered_until: searchedFields.dead_lettered_until,
  key_text: searchedFields.key_text,
  key_base64: searchedFields.key_base64,
  message: searchedFields.message,
  ...idFields,
  archived_from: timeBound('Letters that were archived', 'from'),
  archived_until: timeBound('Letters that were archived', 'until'),
} satisfies TProperties
const ArchiveSpec = Type.Object(archiveFields)
export type ArchiveSpec = Static<typeof ArchiveSpec>

/** A filter in a body. */
export const FilterSpec = component(
  'LetterFilterSpec',
  Type.Object(filterFields, {
    additionalProperties: false,
    description: 'Letters that match all conditions.',
  }),
)
export type FilterSpec = Static<typeof FilterSpec>
const CountedSpec = Type.Object(countedFields)
export type CountedSpec = Static<typeof CountedSpec>

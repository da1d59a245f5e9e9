/**
 * Reports fields of an envelope that are not known. A misspelt field would otherwise be lost silently: the
 * sender gets the problem in the response, and the letter keeps the original envelope.
 */
import { findNearest } from '../../find-nearest.ts'
import { cleanText, isObject, type Json, type Problems } from './fields.ts'

const envelopeFields = [
  ...[
    'source_id',
    'original_topic',
    'original_queue',
    'original_partition',
    'original_offset',
    'original_id',
  ],
  ...['original_key', 'original_key_encoding', 'original_value', 'original_value_encoding'],
  ...['original_timestamp', 'cluster', 'consumer_group', 'headers'],
  ...['error_details', 'error_code', 'retry_count', 'worker_instance', 'history'],
  ...['first_failure_at', 'last_failure_at', 'dead_lettered_at'],
]
const errorFields = ['exception_class', 'message', 'stack_trace', 'code', 'fingerprint']
const failureFields = [
  ...['error_details', 'error_code', 'retry_count', 'worker_instance'],
  ...['failed_at', 'first_failure_at', 'last_failure_at'],
]

const reportedMax = 10
const nameMax = 50

type KnownFields = Readonly<{ names: ReadonlySet<string>; candidates: readonly string[] }>

const ofError = describeFields(errorFields)
const ofEnvelope = describeFields(envelopeFields, errorFields)
const ofFailure = describeFields(failureFields, errorFields)
/** A failure of the history may have the fields of its error next to its own. */
const ofPlainFailure = describeFields([...failureFields, ...errorFields])

export function reportUnknownFields(envelope: Json, problems: Problems): void {
  const unknown = new Map<string, string>()
  const collectUnknown = (json: unknown, within: string, known: KnownFields): void => {
    if (!isObject(json)) return
    for (const [name, value] of Object.entries(json)) {
      // Senders write null for values that they do not have.
      if (value === null || known.names.has(name)) continue
      const path = within + name
      if (unknown.has(path)) continue
      unknown.set(path, unknown.size < reportedMax ? describeUnknown(name, within, known) : '')
    }
  }
  collectUnknown(envelope, '', ofEnvelope)
  collectUnknown(envelope.error_details, 'error_details.', ofError)
  for (const entry of Array.isArray(envelope.history) ? envelope.history : []) {
    if (!isObject(entry)) continue
    collectUnknown(entry, 'history.', hasErrorDetails(entry) ? ofFailure : ofPlainFailure)
    collectUnknown(entry.error_details, 'history.error_details.', ofError)
  }
  for (const sentence of [...unknown.values()].slice(0, reportedMax)) problems.noteChanged(sentence)
  const more = unknown.size - reportedMax
  if (more > 0) problems.noteChanged(`${more} more ${more === 1 ? 'field is' : 'fields are'} unknown`)
}

export function hasErrorDetails(failure: Json): boolean {
  return failure.error_details !== undefined && failure.error_details !== null
}

function describeUnknown(name: string, within: string, { candidates }: KnownFields): string {
  const shown = cleanText(name, nameMax)
  const meant = findNearest(shown, candidates)
  const hint = meant === undefined ? '' : `; did you mean ${within}${meant}?`
  return `${within}${shown} is an unknown field${hint}`
}

function describeFields(names: readonly string[], ofError: readonly string[] = []): KnownFields {
  return { names: new Set(names), candidates: [...names, ...ofError.map((name) => `error_details.${name}`)] }
}

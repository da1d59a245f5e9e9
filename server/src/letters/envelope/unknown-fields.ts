/**
 * Fields of an envelope that nobody reads. They are said, because one that is misspelt would be lost without a word:
 * whoever sent it hears of it, and the letter keeps what was sent.
 */
import { nearest } from '../../nearest.ts'
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
  ...['error_details', 'reason', 'retry_count', 'worker_instance', 'history'],
  ...['first_failure_at', 'last_failure_at', 'dead_lettered_at'],
]
const errorFields = ['exception_class', 'message', 'stack_trace', 'code']
const failureFields = [
  ...['error_details', 'reason', 'retry_count', 'worker_instance'],
  ...['failed_at', 'first_failure_at', 'last_failure_at'],
]

const toldMax = 10
const nameMax = 50

type Known = Readonly<{ names: ReadonlySet<string>; candidates: readonly string[] }>

const ofError = knownOf(errorFields)
const ofEnvelope = knownOf(envelopeFields, errorFields)
const ofFailure = knownOf(failureFields, errorFields)
/** A failure of the history may have the fields of its error beside its own. */
const ofPlainFailure = knownOf([...failureFields, ...errorFields])

export function tellUnknown(envelope: Json, problems: Problems): void {
  const unknown = new Map<string, string>()
  const look = (json: unknown, within: string, known: Known): void => {
    if (!isObject(json)) return
    for (const [name, value] of Object.entries(json)) {
      // Null is what senders write of what they do not have.
      if (value === null || known.names.has(name)) continue
      const path = within + name
      if (unknown.has(path)) continue
      unknown.set(path, unknown.size < toldMax ? told(name, within, known) : '')
    }
  }
  look(envelope, '', ofEnvelope)
  look(envelope.error_details, 'error_details.', ofError)
  for (const entry of Array.isArray(envelope.history) ? envelope.history : []) {
    if (!isObject(entry)) continue
    look(entry, 'history.', hasErrorDetails(entry) ? ofFailure : ofPlainFailure)
    look(entry.error_details, 'history.error_details.', ofError)
  }
  for (const sentence of [...unknown.values()].slice(0, toldMax)) problems.mended(sentence)
  const more = unknown.size - toldMax
  if (more > 0) problems.mended(`${more} more ${more === 1 ? 'field is' : 'fields are'} unknown`)
}

export function hasErrorDetails(failure: Json): boolean {
  return failure.error_details !== undefined && failure.error_details !== null
}

function told(name: string, within: string, { candidates }: Known): string {
  const shown = cleanText(name, nameMax)
  const meant = nearest(shown, candidates)
  const hint = meant === undefined ? '' : `; did you mean ${within}${meant}?`
  return `${within}${shown} is an unknown field${hint}`
}

function knownOf(names: readonly string[], ofError: readonly string[] = []): Known {
  return { names: new Set(names), candidates: [...names, ...ofError.map((name) => `error_details.${name}`)] }
}

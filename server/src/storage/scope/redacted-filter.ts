/**
 * Filters that other callers gave, as a caller sees them who may not read the content that they select by.
 * Campaigns, jobs and audit rows keep such filters.
 */
import { redactedBytes, redactedText, redactUrl } from '../../core/redaction/redaction.ts'
import type { LetterFilter } from '../contract/letters.ts'

/** `areErrorTextsHidden`: rules hide parts of error texts in the queues that the filter selects from. */
export function redactFilter(filter: LetterFilter, areErrorTextsHidden: boolean): LetterFilter {
  const { key, payloadText, header, json } = filter
  return {
    ...filter,
    ...(key !== undefined && { key: redactedBytes }),
    ...(payloadText !== undefined && { payloadText: redactedText }),
    ...(header?.value !== undefined && { header: { ...header, value: redactedText } }),
    ...(json !== undefined && { json: { ...json, value: redactedText } }),
    ...(areErrorTextsHidden && redactErrorTexts(filter)),
  }
}

/** The conditions on texts that patterns are applied to, or that are made of such texts. */
const errorTextFields = ['text', 'errorClasses', 'slugs', 'references'] as const

function redactErrorTexts(filter: LetterFilter): Partial<LetterFilter> {
  const { text, errorClasses, slugs, references } = filter
  return {
    ...(text !== undefined && { text: redactedText }),
    ...(errorClasses !== undefined && { errorClasses: [redactedText] }),
    ...(slugs !== undefined && { slugs: [redactedText] }),
    ...(references !== undefined && { references: [redactedText] }),
  }
}

export function hasErrorTexts(filter: LetterFilter): boolean {
  return errorTextFields.some((name) => filter[name] !== undefined)
}

type Details = Readonly<Record<string, unknown>>

/**
 * The details of an audit row, without the conditions of filters and the addresses of receivers. A filter has
 * the names of `LetterFilter`, except that a key is stored as `keyBase64`.
 */
export function redactDetails(details: Details): Details {
  return Object.fromEntries(Object.entries(details).map(([name, value]) => [name, redactDetail(name, value)]))
}

function redactDetail(name: string, value: unknown): unknown {
  if (name === 'filter') return redactStored(value)
  if ((name === 'callbackUrl' || name === 'callback_url') && typeof value === 'string')
    return redactUrl(value)
  return isObject(value) ? redactDetails(value) : value
}

function redactStored(filter: unknown): unknown {
  if (!isObject(filter)) return filter
  const { keyBase64, ...rest } = filter
  const hidden = redactFilter(rest as LetterFilter, hasErrorTexts(rest as LetterFilter))
  const key = Buffer.from(redactedText).toString('base64')
  return { ...hidden, ...(keyBase64 !== undefined && { keyBase64: key }) }
}

function isObject(value: unknown): value is Details {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

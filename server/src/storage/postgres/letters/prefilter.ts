/**
 * What of a filter is asked of each letter, as conditions on `items_sourced` as `f`. They let pass whatever
 * matches and little else: what the database cannot tell exactly (case, JSON) is looked at again by
 * `matchesLetter`.
 */
import { parseDecimal } from '../../../core/json-number.ts'
import type { LetterFilter } from '../../contract/letters.ts'
import { readConditions } from '../../shared/counted-filter.ts'
import { listConditions, type Parameter } from '../counts/count-conditions.ts'

/** What the part of an index that is read knows already. */
export type KnownToParts = Readonly<{
  order: 'died_at' | 'updated_at'
  isPlace?: boolean
  isRedrives?: boolean
  isKey?: boolean
  isDue?: boolean
}>

export function prefilter(filter: LetterFilter, known: KnownToParts, parameter: Parameter): string[] {
  const conditions: string[] = []
  const within = (what: string, range: Readonly<{ from?: number; until?: number }> | undefined): void => {
    if (range?.from !== undefined) conditions.push(`${what} >= ${parameter(range.from)}::int8`)
    if (range?.until !== undefined) conditions.push(`${what} <= ${parameter(range.until)}::int8`)
  }
  const { redrives } = filter
  if (known.isPlace !== true) {
    const columns = { queue: 'f.queue_id', state: 'f.state' }
    conditions.push(...listConditions(readConditions(filter), columns, parameter))
  }
  if (known.isRedrives !== true && redrives !== undefined) {
    within('f.redrives', {
      ...(redrives.min === undefined ? {} : { from: Math.ceil(redrives.min) }),
      ...(redrives.max === undefined ? {} : { until: Math.floor(redrives.max) }),
    })
  }
  if (known.order !== 'died_at') within('f.died_at', filter.died)
  if (known.order !== 'updated_at') within('f.updated_at', filter.updated)
  // A quote inside a text has a backslash before it: this is the field, and no text that looks like it.
  within(`substring(f.failure from '"lastFailedAt":(-?[0-9]+)')::int8`, filter.lastFailed)
  if (known.isDue !== true && filter.dueBy !== undefined) {
    conditions.push(`f.redrive_at <= ${parameter(filter.dueBy)}::int8`)
  }
  within('f.created_at', filter.arrivedUntil === undefined ? undefined : { until: filter.arrivedUntil })
  if (known.isKey !== true && filter.key !== undefined) {
    conditions.push(`f.key = ${parameter(Buffer.from(filter.key))}::bytea`)
  }
  if (filter.text !== undefined) conditions.push(...mayHaveText(filter.text, parameter))
  if (filter.header !== undefined) conditions.push(mayHaveHeader(filter.header, parameter))
  if (filter.json !== undefined) conditions.push(...mayHaveJson(filter.json, parameter))
  return conditions
}

/** Signs that stand in JSON as they are, and whose case the database knows. */
const plainRun = /[ !#-[\]-~]+/g

function mayHaveText(text: string, parameter: Parameter): string[] {
  const runs = text.match(plainRun) ?? []
  const longest = runs.reduce((found, run) => (run.length > found.length ? run : found), '').toLowerCase()
  if (longest === '') return []
  const others: string[] = []
  // The two signs outside ASCII that are an ASCII letter in lower case.
  if (longest.includes('k')) others.push(`or strpos(f.failure, '\u212a') > 0`)
  if (longest.includes('i')) others.push(`or strpos(f.failure, '\u0130') > 0`)
  return [`(strpos(lower(f.failure), ${parameter(longest)}::text) > 0 ${others.join(' ')})`]
}

/** As rows.ts writes them. A byte order mark before the value is not part of it when it is read as text. */
function mayHaveHeader({ name, value }: NonNullable<LetterFilter['header']>, parameter: Parameter): string {
  const written =
    value === undefined
      ? [JSON.stringify(name)]
      : [value, `\ufeff${value}`].map(
          (text) => `${JSON.stringify(name)},"${Buffer.from(text).toString('base64')}"`,
        )
  return `(${written.map((text) => `strpos(f.headers, ${parameter(text)}::text) > 0`).join(' or ')})`
}

/** Any text may be written with escapes; where there is a backslash, only reading tells. */
function mayHaveJson({ path, value }: NonNullable<LetterFilter['json']>, parameter: Parameter): string[] {
  const has = (text: string) => `position(${parameter(Buffer.from(text))}::bytea in f.payload) > 0`
  const isNumber = typeof value === 'object' && value !== null
  const writings = isNumber ? writingsOf(value.number) : undefined
  if (writings !== undefined) return [`(${writings.map(has).join(' or ')})`]
  const key = path.findLast((step) => typeof step === 'string')
  const wanted = isNumber ? key : String(value)
  if (wanted === undefined || wanted === '') return []
  return [`(${has(wanted)} or ${has('\\')})`]
}

const digitsMax = 12

/**
 * One of these stands wherever the number is written, whatever the place of its point and its exponent:
 * 417 as 417, 417.0, 4.17e2 or 4170e-1. Undefined for numbers that can be written in too many ways.
 */
export function writingsOf(number: string): string[] | undefined {
  const { digits: significant, point, exponent } = parseDecimal(number)
  // Rounded only where it is far beyond the bound.
  const wholeLength = point + Number(exponent)
  if (significant === '' || Math.max(significant.length, wholeLength) > digitsMax) return undefined
  const digits = significant.padEnd(wholeLength, '0')
  const writings = new Set([digits])
  // Fewer zeros at its end than it has: a point or an exponent follows.
  for (let zeros = significant.length; zeros < digits.length; zeros++) {
    for (const next of ['.', 'e', 'E']) writings.add(`${digits.slice(0, zeros)}${next}`)
  }
  // The point somewhere inside.
  for (let at = 1; at < significant.length; at++) {
    writings.add(`${significant.slice(0, at)}.${significant.slice(at)}`)
  }
  return [...writings]
}

/**
 * Prints the conditions of a filter that are checked on each letter, on its table as `f`. They pass
 * every letter that matches and few others. `matchesLetter` compares again what the database cannot compare
 * exactly (upper and lower case, JSON).
 */
import { parseDecimal } from '../../../core/text/json-number.ts'
import type { LetterFilter } from '../../contract/letters.ts'
import { readConditions } from '../../shared/letters/counted-filter.ts'
import { searchedPayloadMax } from '../../shared/letters/match-letter.ts'
import { encodeTracePrefix, traceHeaderStart } from '../../shared/letters/trace-id.ts'
import { listConditions, type Parameter, printTexts } from '../counts/count-conditions.ts'

/** Conditions that all letters of the index ranges meet, so that they need not be checked. */
export type RangeFacts = Readonly<{
  /** The column by which the ranges are read, within the time range of the filter. */
  order: 'died_at' | 'updated_at' | 'archived_at'
  /** Each range has one queue and state. */
  hasState?: boolean
  hasRedrives?: boolean
  hasKey?: boolean
  isDue?: boolean
}>

export function printPrefilter(filter: LetterFilter, facts: RangeFacts, parameter: Parameter): string[] {
  return [
    ...(facts.hasState ? [] : listConditions(readConditions(filter), stateColumns, parameter)),
    ...(facts.hasRedrives ? [] : printRedrives(filter.retryCount, parameter)),
    ...printTimes(filter, facts, parameter),
    ...(facts.hasKey || filter.key === undefined
      ? []
      : [`f.key = ${parameter(Buffer.from(filter.key))}::bytea`]),
    ...printIds(filter, parameter),
    ...(filter.text === undefined ? [] : printText(filter.text, parameter)),
    ...(filter.header === undefined ? [] : [printHeader(filter.header, parameter)]),
    ...(filter.payloadText === undefined ? [] : printPayloadText(filter.payloadText, parameter)),
    ...(filter.json === undefined ? [] : printJson(filter.json, parameter)),
  ]
}

const stateColumns = { queue: 'f.queue_id', state: 'f.state' } as const

function printRedrives(redrives: LetterFilter['retryCount'], parameter: Parameter): string[] {
  const { min, max } = redrives ?? {}
  const range = {
    ...(min === undefined ? {} : { from: Math.ceil(min) }),
    ...(max === undefined ? {} : { until: Math.floor(max) }),
  }
  return printRange('f.redrives', range, parameter)
}

function printTimes(filter: LetterFilter, facts: RangeFacts, parameter: Parameter): string[] {
  const { dueBy } = filter
  return [
    ...(facts.order === 'died_at' ? [] : printRange('f.died_at', filter.died, parameter)),
    ...(facts.order === 'updated_at' ? [] : printRange('f.updated_at', filter.updated, parameter)),
    // A quote inside a JSON text is escaped, so this matches the field and never a text that looks like it.
    ...printRange(
      `substring(f.failure from '"lastFailedAt":(-?[0-9]+)')::int8`,
      filter.lastFailed,
      parameter,
    ),
    ...(facts.isDue || dueBy === undefined ? [] : printRange('f.redrive_at', { until: dueBy }, parameter)),
  ]
}

function printRange(
  expression: string,
  range: Readonly<{ from?: number; until?: number }> | undefined,
  parameter: Parameter,
): string[] {
  return [
    ...(range?.from === undefined ? [] : [`${expression} >= ${parameter(range.from)}::int8`]),
    ...(range?.until === undefined ? [] : [`${expression} <= ${parameter(range.until)}::int8`]),
  ]
}

function printIds(filter: LetterFilter, parameter: Parameter): string[] {
  const { letterIds, sourceIds, references, traceIds } = filter
  const isOne = (expression: string, list: readonly string[] | undefined) =>
    list === undefined ? [] : [`${expression} = any (${printTexts(list, parameter)})`]
  const starts = traceIds?.map((id) => `${traceHeaderStart}${encodeTracePrefix(id)}`)
  return [
    ...isOne('coalesce(f.root_id, f.id)', letterIds),
    ...isOne('f.source_id', sourceIds),
    ...isOne(`coalesce(f.reference, '')`, references),
    ...(starts === undefined
      ? []
      : [`exists (select from unnest(${printTexts(starts, parameter)}) s where strpos(f.headers, s) > 0)`]),
  ]
}

/** Characters that JSON does not escape and whose case the database can fold. */
const plainRun = /[ !#-[\]-~]+/g

function findLongestRun(text: string): string {
  const runs = text.match(plainRun) ?? []
  return runs.reduce((found, run) => (run.length > found.length ? run : found), '').toLowerCase()
}

/**
 * The bytes as text in the format `escape`, which leaves ASCII as it is, except backslashes. So every payload
 * can be compared, also if it is not UTF-8.
 */
function printPayloadText(text: string, parameter: Parameter): string[] {
  const longest = findLongestRun(text)
  if (longest === '') return []
  const bytes = `substring(f.payload from 1 for ${searchedPayloadMax})`
  const others: string[] = []
  // In UTF-8, the two characters outside ASCII whose lower case is an ASCII letter.
  if (longest.includes('k')) others.push(`or position('\\xe284aa'::bytea in ${bytes}) > 0`)
  if (longest.includes('i')) others.push(`or position('\\xc4b0'::bytea in ${bytes}) > 0`)
  return [
    `(strpos(lower(encode(${bytes}, 'escape') collate "C"), ${parameter(longest)}::text collate "C") > 0 ${others.join(' ')})`,
  ]
}

function printText(text: string, parameter: Parameter): string[] {
  const longest = findLongestRun(text)
  if (longest === '') return []
  const others: string[] = []
  // The two characters outside ASCII whose lower case is an ASCII letter.
  if (longest.includes('k')) others.push(`or strpos(f.failure, '\u212a') > 0`)
  if (longest.includes('i')) others.push(`or strpos(f.failure, '\u0130') > 0`)
  return [`(strpos(lower(f.failure), ${parameter(longest)}::text) > 0 ${others.join(' ')})`]
}

/**
 * Searches the text that `encodeHeaders` writes. A byte order mark before a value is not part of the value.
 */
function printHeader({ name, value }: NonNullable<LetterFilter['header']>, parameter: Parameter): string {
  const written =
    value === undefined
      ? [JSON.stringify(name)]
      : [value, `\ufeff${value}`].map(
          (text) => `${JSON.stringify(name)},"${Buffer.from(text).toString('base64')}"`,
        )
  return `(${written.map((text) => `strpos(f.headers, ${parameter(text)}::text) > 0`).join(' or ')})`
}

/** JSON may write any text with escapes, so a payload with a backslash passes. */
function printJson({ path, value }: NonNullable<LetterFilter['json']>, parameter: Parameter): string[] {
  // The length is known without reading the payload.
  const isSearched = `octet_length(f.payload) <= ${searchedPayloadMax}`
  const has = (text: string) => `position(${parameter(Buffer.from(text))}::bytea in f.payload) > 0`
  const isNumber = typeof value === 'object' && value !== null
  const writings = isNumber ? listWritings(value.number) : undefined
  if (writings !== undefined) return [isSearched, `(${writings.map(has).join(' or ')})`]
  const key = path.findLast((step) => typeof step === 'string')
  const wanted = isNumber ? key : String(value)
  if (wanted === undefined || wanted === '') return [isSearched]
  return [isSearched, `(${has(wanted)} or ${has('\\')})`]
}

const digitsMax = 12

/**
 * Every way to write the number contains one of these texts, wherever its point is and whatever its exponent:
 * 417 may be written as 417, 417.0, 4.17e2 or 4170e-1. Undefined: the number can be written in too many ways.
 */
export function listWritings(number: string): string[] | undefined {
  const { digits: significant, point, exponent } = parseDecimal(number)
  // The conversion is inexact only for exponents far beyond `digitsMax`.
  const wholeLength = point + Number(exponent)
  if (significant === '' || Math.max(significant.length, wholeLength) > digitsMax) return undefined
  const digits = significant.padEnd(wholeLength, '0')
  const writings = new Set([digits])
  // A number that is written with fewer zeros at its end has a point or an exponent there.
  for (let zeros = significant.length; zeros < digits.length; zeros++) {
    for (const next of ['.', 'e', 'E']) writings.add(`${digits.slice(0, zeros)}${next}`)
  }
  // The point may be between any two digits.
  for (let at = 1; at < significant.length; at++) {
    writings.add(`${significant.slice(0, at)}.${significant.slice(at)}`)
  }
  return [...writings]
}

/**
 * What of a filter is asked of each letter, as conditions on `items_sourced` as `f`. They let pass whatever
 * matches and little else: what the database cannot tell exactly (case, JSON) is looked at again by
 * `matchesLetter`.
 */
import type { LetterFilter } from '../letter-store.ts'
import { int4s } from './arrays.ts'
import { type Parameter, queueIds } from './letter-cells.ts'
import { stateCodes } from './rows.ts'

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
  const { queues, states, redrives } = filter
  if (known.isPlace !== true) {
    if (queues !== undefined) conditions.push(`f.queue_id = any (${queueIds(queues, parameter)})`)
    if (states !== undefined) {
      conditions.push(`f.state = any (${parameter(int4s(states.map((state) => stateCodes[state])))}::int4[])`)
    }
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
  if (known.isKey !== true && filter.key !== undefined) {
    conditions.push(`f.key = ${parameter(Buffer.from(filter.key))}::bytea`)
  }
  if (filter.text !== undefined) conditions.push(...mayHaveText(filter.text, parameter))
  if (filter.header !== undefined) {
    conditions.push(`strpos(f.headers, ${parameter(JSON.stringify(filter.header.name))}::text) > 0`)
  }
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

/** Any text may be written with escapes; where there is a backslash, only reading tells. */
function mayHaveJson({ path, value }: NonNullable<LetterFilter['json']>, parameter: Parameter): string[] {
  const key = path.findLast((step) => typeof step === 'string')
  // A number can be written in many ways: then its name is looked for.
  const wanted = typeof value === 'number' ? key : String(value)
  if (wanted === undefined || wanted === '') return []
  const sign = parameter(Buffer.from(wanted))
  return [`(position(${sign}::bytea in f.payload) > 0 or position('\\x5c'::bytea in f.payload) > 0)`]
}

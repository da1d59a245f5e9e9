/**
 * Pages of letters. What the counts know (queue, state, group and what a group tells, redrives) is resolved to
 * the parts of an index that hold such letters. Of each part a few are read in order, and merged up to where the
 * first of the parts may go on: so a page costs the number of parts, however many letters there are. What only a
 * letter itself tells is looked at one letter after the other, in statements that are each short.
 */

import {
  headBytes,
  type LetterBytes,
  type LetterCursor,
  type LetterFilter,
  type LettersPage,
  type LettersQuery,
  type ListedLetter,
  measureLetter,
  pageBytesMax,
} from '../../contract/letters.ts'
import { matchesLetter } from '../../shared/match-letter.ts'
import type { Connection, Row } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { int4s } from '../connection/encode-arrays.ts'
import type { Parameter } from '../counts/count-conditions.ts'
import { type ColumnName, payloadStart, readColumns, toListedLetter } from '../items/rows.ts'
import { type Parts, partsOf } from './index-ranges.ts'
import { prefilter } from './prefilter.ts'

export type FindQuery = Omit<LettersQuery, 'bytes'>
type Reader = Pick<Connection, 'query'>

/** Letters that one statement looks at: more when that was quick, fewer when it was not. */
const stepMin = 250
const stepFirst = 1_000
const stepMax = 8_000
const stepMsFew = 40
const stepMsMany = 200
/** A search gives what it found so far. */
const searchMsMax = 400
/** Of letters that the database lets pass, and that then do not match, so many may come with one statement. */
const hitsMax = 1_000
/** A walk goes on from where one of its parts had more than its share. */
const walkRounds = 3
/** Payloads that one statement may read through to look into them. */
const stepBytesMax = 32 * 2 ** 20

const byteColumns: readonly ColumnName[] = ['payload', 'key', 'headers', 'history']
/** About what `measureLetter` says of a letter, without reading it. */
const weight =
  'octet_length(f.payload) + coalesce(octet_length(f.headers), 0) + coalesce(octet_length(f.history), 0)'

export async function listLetters(connections: Connections, query: LettersQuery): Promise<LettersPage> {
  const reader = { query: connections.read.bind(connections) }
  const { found, looked, next } = await search(reader, query, query.bytes)
  return { letters: found.map(({ item }) => withBytes(item, query.bytes)), looked, next }
}

/** What was read to look into it, and was not asked for, is left out. */
function withBytes(letter: ListedLetter, bytes: LetterBytes): ListedLetter {
  const { payload } = letter
  switch (bytes) {
    case 'none':
      return { ...letter, payload: noBytes, key: null, headers: [], history: [] }
    case 'head': {
      const head = { ...letter, payload: payload.slice(0, headBytes), headers: [], history: [] }
      return payload.length > headBytes ? { ...head, payloadBytes: payload.length } : head
    }
    case 'all':
      return letter
  }
}

const noBytes = new Uint8Array()

export type FoundLetters = Readonly<{ letterIds: string[]; looked: number; next: LetterCursor | null }>

export async function findLetters(reader: Reader, query: FindQuery): Promise<FoundLetters> {
  const { found, looked, next } = await search(reader, query, 'none')
  return { letterIds: found.map(({ item }) => item.rootId), looked, next }
}

type Hit = Readonly<{ item: ListedLetter; place: LetterCursor; rank: number }>

async function search(
  reader: Reader,
  query: FindQuery,
  bytes: LetterBytes,
): Promise<{ found: Hit[]; looked: number; next: LetterCursor | null }> {
  const { filter, lookMax } = query
  const found: Hit[] = []
  if (query.countMax < 1 || lookMax < 1) return { found, looked: 0, next: query.after ?? null }
  const parts = await partsOf(reader, query)
  if (parts.count === 0) return { found, looked: 0, next: null }

  const isSearch = needsLook(filter, parts)
  if (parts.walk !== undefined && !isSearch) {
    const walked = await walk(reader, query, parts.walk, bytes)
    if (walked !== undefined) return walked
  }
  const countMax = isSearch ? query.countMax : Math.min(query.countMax, lookMax)
  const until = performance.now() + searchMsMax
  let { after } = query
  let looked = 0
  let step = stepFirst
  // What the database cannot tell exactly it lets pass: then more are asked for at once, or a statement would
  // get no further than the few letters that are wanted.
  let surplus = 1
  for (let round = 0; ; round++) {
    const room = lookMax - looked
    const least = countMax - found.length + 1
    const wanted = Math.max(least, Math.min(least * surplus, hitsMax))
    const searched = after === undefined ? query : { ...query, after }
    // Where a letter may not match though it is not searched for, no more than allowed are looked at either.
    const isSure = !isSearch && filter.arrivedUntil === undefined
    const count = isSure ? wanted : Math.min(room, isSearch ? step : wanted)
    const startedAt = performance.now()
    const page = await look(reader, searched, parts, { count, wanted, round, bytes })
    const tookMs = performance.now() - startedAt
    if (tookMs < stepMsFew) step = Math.min(step * 2, stepMax)
    else if (tookMs > stepMsMany) step = Math.max(Math.floor(step / 2), stepMin)

    let matching = 0
    for (const hit of page.hits) {
      if (!matchesLetter(hit.item, filter)) continue
      matching++
      const last = found.at(-1)
      // One more than asked for: now it is certain that there is more.
      if (found.length === countMax)
        return { found, looked: looked + rankOf(last, page), next: last?.place ?? null }
      found.push(hit)
    }
    if (page.hits.length > 2 * matching) surplus = Math.min(surplus * 8, hitsMax)
    const isAll = page.hits.length < wanted
    if (isAll && page.isEnd) return { found, looked: looked + page.looked, next: null }
    const last = found.at(-1)
    if (last !== undefined && (found.length === countMax || isHeavy(found, bytes))) {
      return { found, looked: looked + rankOf(last, page), next: last.place }
    }
    const reached = isAll ? page.last : page.hits.at(-1)?.place
    looked += isAll ? page.looked : (page.hits.at(-1)?.rank ?? 0)
    after = reached ?? after
    if (looked >= lookMax || performance.now() > until) return { found, looked, next: after ?? null }
  }
}

/** Whether there are enough bytes for a page. */
function isHeavy(found: readonly Hit[], bytes: LetterBytes): boolean {
  return bytes === 'all' && found.reduce((sum, { item }) => sum + measureLetter(item), 0) >= pageBytesMax
}

/** The page, where it is found among the next letters of the parts; nothing is known where it is not. */
async function walk(
  reader: Reader,
  query: FindQuery,
  parts: NonNullable<Parts['walk']>,
  bytes: LetterBytes,
): Promise<{ found: Hit[]; looked: number; next: LetterCursor | null } | undefined> {
  const { filter, countMax } = query
  const lookMax = Math.min(Math.ceil(1.5 * parts.walked) + 100, query.lookMax)
  const found: Hit[] = []
  let { after } = query
  let looked = 0
  for (let round = 0; round < walkRounds && looked < lookMax; round++) {
    const searched = after === undefined ? query : { ...query, after }
    const step = { count: lookMax - looked, wanted: countMax - found.length + 1, round, bytes }
    const page = await look(reader, searched, parts, step)
    found.push(...page.hits.filter(({ item }) => matchesLetter(item, filter)))
    if (found.length > countMax) {
      const last = found[countMax - 1]
      return {
        found: found.slice(0, countMax),
        looked: looked + rankOf(last, page),
        next: last?.place ?? null,
      }
    }
    const last = found.at(-1)
    if (last !== undefined && isHeavy(found, bytes) && !page.isEnd) {
      return { found, looked: looked + rankOf(last, page), next: last.place }
    }
    if (page.isEnd || page.hits.length === step.wanted) return undefined
    looked += page.looked
    after = page.last ?? after
  }
  return undefined
}

/** How many were looked at to find it; it may have been found by a statement before. */
function rankOf(hit: Hit | undefined, page: Page): number {
  return hit !== undefined && page.hits.includes(hit) ? hit.rank : 0
}

/** Whether a letter itself must be looked at, beyond where it stands. (When it arrived nearly every letter passes.) */
function needsLook({ arrivedUntil, ...filter }: LetterFilter, parts: Parts): boolean {
  return (
    parts.conditions.length > 0 ||
    parts.isClassOpen === true ||
    prefilter(filter, parts.known, () => '').length > 0 ||
    filter.text !== undefined
  )
}

type Page = Readonly<{
  hits: readonly Hit[]
  looked: number
  last: LetterCursor | undefined
  /** Nothing comes after what was looked at. */
  isEnd: boolean
}>
type Step = Readonly<{ count: number; wanted: number; round: number; bytes: LetterBytes }>

async function look(reader: Reader, query: FindQuery, parts: Parts, step: Step): Promise<Page> {
  const { text, values } = lookStatement(query, parts, step)
  const rows = await reader.query({ text }, values)
  const [first] = rows
  const placeOf = (row: Row): LetterCursor => ({ value: row.at as number, id: row.id as string })
  const hits = rows
    .filter((row) => row.rank !== null)
    .map((row) => ({
      item: toListedLetter(row, row.queue_name as string),
      place: placeOf(row),
      rank: row.rank as number,
    }))
  const looked = first?.looked as number
  const last = looked === 0 ? undefined : { value: first?.last_at as number, id: first?.last_id as string }
  return { hits, looked, last, isEnd: first?.is_end === true }
}

/**
 * Of each part of an index that is looked into for one page few are asked for, and more in each round: as many as its share of
 * the letters, where that is known. Of those that have most of them the page may be complete then.
 */
function fewOf(count: number, { count: parts, shares }: Parts, round: number): number[] {
  if (parts === 1) return [count]
  const all = shares?.reduce((sum, share) => sum + share, 0) ?? parts
  return Array.from({ length: parts }, (_, part) => {
    const expected = (count * (shares?.[part] ?? 1)) / Math.max(all, 1)
    return Math.min(count, Math.max(4, Math.ceil(2 * expected)) * 4 ** Math.min(round, 8))
  })
}

export function lookStatement(
  query: FindQuery,
  parts: Parts,
  step: Step,
): Readonly<{ text: string; values: unknown[] }> {
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const { filter, isDescending } = query
  const column = parts.known.order
  const direction = isDescending ? 'desc' : 'asc'
  const order = (alias: string, name: string) => `${alias}.${name} ${direction}, ${alias}.id ${direction}`

  const numbers = [...parts.keys, fewOf(step.count, parts, step.round)]
  const keys = `unnest(${numbers.map((key) => `${parameter(int4s(key))}::int4[]`).join(', ')}) as w(a, b, c, few)`
  const bounds = [parts.where(parameter), ...boundsOf(query, column, parameter)]
  const isWhole = step.bytes === 'all'
  const isSized = filter.json !== undefined || isWhole
  // The inner limit is for the planner, which takes one that it does not know for a tenth of all.
  const probed = `select p.*, w.few from ${keys} cross join lateral (
      select o.*, row_number() over () as k from (
        select i.* from (
          select f.ctid as place, f.${column} as at, f.id${isSized ? `, (${weight})::int8 as size` : ''}
          from redrive.items_sourced f where ${bounds.join(' and ')}
          order by ${order('f', column)} limit ${parameter(step.count)}::int8
        ) i limit w.few
      ) o
    ) p`
  const ranked = `select p.place, p.at, p.id, row_number() over (order by ${order('p', 'at')}) as rank
      ${isSized ? `, sum(p.size) over (order by ${order('p', 'at')}) - p.size as before_it` : ''}
    from probed p where not exists (select from edge) or (p.at, p.id) ${isDescending ? '>=' : '<='} (select e.at, e.id from edge e)
    order by ${order('p', 'at')} limit ${parameter(step.count)}::int8`
  const conditions = [...prefilter(filter, parts.known, parameter), ...parts.conditions]
  const judged =
    conditions.length === 0
      ? ''
      : `cross join lateral (
          select from redrive.items_sourced f where f.ctid = l.place and ${conditions.join(' and ')} offset 0) j`
  const columns = columnsFor(filter, step.bytes)
  const text = `with probed as materialized (${probed}
    ), edge as materialized (select p.at, p.id from probed p where p.k = p.few order by ${order('p', 'at')} limit 1
    ), ranked as materialized (${ranked}
    ), looked as materialized (
      select r.* from ranked r ${isSized ? `where r.before_it < ${isWhole ? pageBytesMax : stepBytesMax}` : ''}
    ), hits as materialized (
      select l.place, l.at, l.id, l.rank from looked l ${judged}
      order by l.rank limit ${parameter(step.wanted)}::int8
    )
    select m.looked, m.last_at, m.last_id, m.is_end, h.rank, h.at, q.name as queue_name, ${columns}
    from (
        select count(*) as looked, max(l.at) filter (where l.is_last) as last_at,
          max(l.id) filter (where l.is_last) as last_id,
          count(*) = (select count(*) from probed) and not exists (select from edge) as is_end
        from (select l.*, l.rank = max(l.rank) over () as is_last from looked l) l
      ) m
      left join (
        hits h cross join lateral (select f.* from redrive.items_sourced f where f.ctid = h.place offset 0) f
          cross join lateral (select q.name from redrive.queues q where q.id = f.queue_id offset 0) q
      ) on true
    order by h.rank`
  return { text, values }
}

/**
 * From where to where. At the side where the page begins there is only one bound, the nearer one: of two, the
 * database may begin at the farther, and pass over all that lies between them.
 */
function boundsOf(
  { filter, after, isDescending }: FindQuery,
  column: string,
  parameter: Parameter,
): readonly string[] {
  const { from, until } = (column === 'died_at' ? filter.died : filter.updated) ?? {}
  const isAfterNearer =
    after !== undefined &&
    (isDescending ? after.value <= (until ?? after.value) : after.value >= (from ?? after.value))
  const bounds: string[] = []
  if (from !== undefined && (isDescending || !isAfterNearer)) {
    bounds.push(`f.${column} >= ${parameter(from)}::int8`)
  }
  if (until !== undefined && (!isDescending || !isAfterNearer)) {
    bounds.push(`f.${column} <= ${parameter(until)}::int8`)
  }
  if (after !== undefined && isAfterNearer) {
    const place = `(${parameter(after.value)}::int8, ${parameter(after.id)}::text)`
    bounds.push(`(f.${column}, f.id) ${isDescending ? '<' : '>'} ${place}`)
  }
  return bounds
}

/** Bytes travel only where they are asked for, or looked into. */
function columnsFor(filter: LetterFilter, bytes: LetterBytes): string {
  const needed = new Set<ColumnName>([
    ...(bytes === 'all' ? byteColumns : []),
    ...(filter.json === undefined ? [] : (['payload'] as const)),
    ...(filter.key === undefined && bytes === 'none' ? [] : (['key'] as const)),
    ...(filter.header === undefined ? [] : (['headers'] as const)),
  ])
  const columns = readColumns.filter((name) => !byteColumns.includes(name) || needed.has(name))
  const list = columns.map((name) => `f.${name}`).join(', ')
  return bytes === 'head' && !needed.has('payload') ? `${list}, ${payloadStart}` : list
}

/**
 * Compares a letter with a filter. Origin, reason and slug belong to the group of a letter: the stores find
 * the groups first and do not compare them here. Both stores call this before they return a letter, so that a
 * search finds the same letters in both.
 */
import { toErrorClass } from '../../core/cause.ts'
import type { Instant } from '../../core/instant.ts'
import { type Header, type Item, listedState } from '../../core/item.ts'
import { isSameNumber, type JsonNumber } from '../../core/json-number.ts'
import { textAt } from '../../core/json-text.ts'
import type { ArchiveFilter, LetterFilter, ListedArchived } from '../contract/letters.ts'

export function matchesLetter(item: Item, filter: LetterFilter): boolean {
  const { queues, states, groupIds, redrives, errorClasses } = filter
  if (queues !== undefined && !queues.includes(item.queue)) return false
  if (states !== undefined && !states.includes(listedState(item))) return false
  if (groupIds !== undefined && (item.groupId === null || !groupIds.includes(item.groupId))) return false
  if (redrives !== undefined && !isWithin(item.redrives, redrives.min, redrives.max)) return false
  if (errorClasses !== undefined && !errorClasses.includes(toErrorClass(item.failure))) return false
  return matchesDetail(item, filter)
}

/** `matchesLetter` for a letter in the archive. */
export function matchesArchived({ item, archivedAt }: ListedArchived, filter: ArchiveFilter): boolean {
  const { archived, sourceIds, ...rest } = filter
  if (archived !== undefined && !isWithin(archivedAt, archived.from, archived.until)) return false
  if (sourceIds !== undefined && (item.sourceId === null || !sourceIds.includes(item.sourceId))) return false
  return matchesLetter(item, rest)
}

/** Compares the fields that neither counts nor groups have. */
function matchesDetail(item: Item, filter: LetterFilter): boolean {
  return matchesTimes(item, filter) && matchesContent(item, filter)
}

function matchesTimes(item: Item, filter: LetterFilter): boolean {
  const { died, updated, lastFailed, dueBy } = filter
  return (
    isInRange(item.diedAt, died) &&
    isInRange(item.updatedAt, updated) &&
    isInRange(item.failure?.lastFailedAt ?? null, lastFailed) &&
    (dueBy === undefined || isWithin(item.letter?.nextRedriveAt ?? null, undefined, dueBy))
  )
}

function matchesContent(item: Item, { key, text, header, json }: LetterFilter): boolean {
  if (key !== undefined && (item.key === null || !areEqual(item.key, key))) return false
  if (text !== undefined && !hasText(item.failure?.message ?? '', text)) return false
  if (header !== undefined && !item.headers.some((each) => isHeader(each, header))) return false
  return json === undefined || hasJson(item.payload, json)
}

function isInRange(time: Instant | null, range: LetterFilter['died']): boolean {
  return range === undefined || isWithin(time, range.from, range.until)
}

function isWithin(value: Instant | null, min: number | undefined, max: number | undefined): boolean {
  return value !== null && (min === undefined || value >= min) && (max === undefined || value <= max)
}

function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && a.every((byte, index) => byte === b[index])
}

function hasText(message: string, text: string): boolean {
  return message.toLowerCase().includes(text.toLowerCase())
}

const decoder = new TextDecoder('utf-8', { fatal: true })

function isHeader([name, value]: Header, wanted: NonNullable<LetterFilter['header']>): boolean {
  if (name !== wanted.name) return false
  if (wanted.value === undefined) return true
  return value !== null && decodeText(value) === wanted.value
}

/**
 * Larger payloads are not searched by JSON path. Parsing a payload of this size takes a few milliseconds, and
 * at most about 50. A search looks at its time and answers other requests only between two payloads.
 */
export const searchedPayloadMax = 2 ** 20

/** A payload that is not JSON, or too large to be parsed, has no value at any path. */
function hasJson(payload: Uint8Array, { path, value }: NonNullable<LetterFilter['json']>): boolean {
  if (payload.byteLength > searchedPayloadMax) return false
  const text = decodeText(payload)
  if (text === undefined) return false
  let part: unknown
  try {
    part = JSON.parse(text)
  } catch {
    return false
  }
  for (const step of path) {
    if (part === null || typeof part !== 'object') return false
    if (Array.isArray(part) !== (typeof step === 'number')) return false
    if (!Object.hasOwn(part, step)) return false
    part = (part as Record<string | number, unknown>)[step]
  }
  if (value === null || typeof value !== 'object') return part === value
  return typeof part === 'number' && hasNumber(part, text, path, value)
}

/**
 * Compares doubles first, which is cheap. Two different numbers may round to the same double: then compares
 * digits.
 */
function hasNumber(
  part: number,
  text: string,
  path: readonly (string | number)[],
  wanted: JsonNumber,
): boolean {
  if (part !== Number(wanted.number)) return false
  const written = textAt(text, path)
  return written !== undefined && isSameNumber(written, wanted.number)
}

function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

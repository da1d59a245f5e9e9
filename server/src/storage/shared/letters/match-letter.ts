/**
 * Compares a letter with a filter. Origin, reason and slug belong to the group of a letter: the stores find
 * the groups first and do not compare them here. Both stores call this before they return a letter, so that a
 * search finds the same letters in both. The ranges of the archive answer the time of archiving.
 */
import { Buffer } from 'node:buffer'
import { toErrorClass } from '../../../core/dead-letters/cause.ts'
import { type Header, type Item, toListedState } from '../../../core/items/item.ts'
import { isSameNumber, type JsonNumber } from '../../../core/text/json-number.ts'
import { findText } from '../../../core/text/json-text.ts'
import type { Instant } from '../../../core/time/instant.ts'
import type { LetterFilter } from '../../contract/letters.ts'
import { readTraceId } from './trace-id.ts'

export function matchesLetter(item: Item, filter: LetterFilter): boolean {
  const { queues, states, groupIds, retryCount, errorClasses } = filter
  if (queues !== undefined && !queues.includes(item.queue)) return false
  if (states !== undefined && !states.includes(toListedState(item))) return false
  if (groupIds !== undefined && (item.groupId === null || !groupIds.includes(item.groupId))) return false
  if (retryCount !== undefined && !isWithin(item.retryCount, retryCount.min, retryCount.max)) return false
  if (errorClasses !== undefined && !errorClasses.includes(toErrorClass(item.failure))) return false
  return matchesDetail(item, filter)
}

/** Compares the fields that neither counts nor groups have. */
function matchesDetail(item: Item, filter: LetterFilter): boolean {
  return matchesTimes(item, filter) && matchesIds(item, filter) && matchesContent(item, filter)
}

function matchesTimes(item: Item, filter: LetterFilter): boolean {
  const { died, updated, lastFailed, dueBy } = filter
  return (
    isInRange(item.deadLetteredAt, died) &&
    isInRange(item.updatedAt, updated) &&
    isInRange(item.failure?.lastFailedAt ?? null, lastFailed) &&
    (dueBy === undefined || isWithin(item.letter?.nextRedriveAt ?? null, undefined, dueBy))
  )
}

function matchesIds(item: Item, filter: LetterFilter): boolean {
  const { letterIds, sourceIds, references, traceIds } = filter
  return (
    (letterIds === undefined || letterIds.includes(item.rootId)) &&
    (sourceIds === undefined || (item.sourceId !== null && sourceIds.includes(item.sourceId))) &&
    (references === undefined || references.includes(item.reference)) &&
    (traceIds === undefined || traceIds.includes(readTraceId(item.headers) ?? ''))
  )
}

function matchesContent(item: Item, { key, text, header, json, payloadText }: LetterFilter): boolean {
  if (key !== undefined && (item.key === null || !areEqual(item.key, key))) return false
  if (text !== undefined && !hasText(item.failure?.message ?? '', text)) return false
  if (header !== undefined && !item.headers.some((each) => isHeader(each, header))) return false
  if (payloadText !== undefined && !hasPayloadText(item.payload, payloadText)) return false
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

/** Bytes that are not UTF-8 are no part of a text; the text around them is found. */
function hasPayloadText(payload: Uint8Array, text: string): boolean {
  const { buffer, byteOffset, byteLength } = payload
  const length = Math.min(byteLength, searchedPayloadMax)
  return hasText(Buffer.from(buffer, byteOffset, length).toString('utf8'), text)
}

const decoder = new TextDecoder('utf-8', { fatal: true })

function isHeader([name, value]: Header, wanted: NonNullable<LetterFilter['header']>): boolean {
  if (name !== wanted.name) return false
  if (wanted.value === undefined) return true
  return value !== null && decodeText(value) === wanted.value
}

/**
 * Larger payloads are not searched by JSON path, and only this much of them is searched as text. Parsing a
 * payload of this size takes a few milliseconds, and at most about 50. A search looks at its time and answers
 * other requests only between two payloads.
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
  const written = findText(text, path)
  return written !== undefined && isSameNumber(written, wanted.number)
}

function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** A plain implementation of letter filters: the letters that a store must find. */
import { toCause } from '../../../src/core/dead-letters/cause.ts'
import type { Item } from '../../../src/core/items/item.ts'
import type { Instant } from '../../../src/core/time/instant.ts'
import type { LetterFilter, LetterOrder, RangesQuery } from '../../../src/storage/contract/letters.ts'
import { scaled } from '../../number-texts.ts'
import { toGauge } from './store-reads.ts'

export function matchesFilter(letter: Item, filter: LetterFilter): boolean {
  const { failure, letter: facts } = letter
  const cause = toCause(failure, letter.origin ?? { name: '' })
  return (
    isAmong(letter.queue, filter.queues) &&
    isAmong(toGauge(letter), filter.states) &&
    isAmong(letter.groupId ?? -1, filter.groupIds) &&
    isAmong(cause.origin, filter.origins) &&
    isAmong(cause.errorCode, filter.errorCodes) &&
    isAmong(cause.slug, filter.slugs) &&
    isAmong(cause.errorClass, filter.errorClasses) &&
    letter.retryCount >= (filter.retryCount?.min ?? 0) &&
    letter.retryCount <= (filter.retryCount?.max ?? Number.POSITIVE_INFINITY) &&
    isWithin(letter.deadLetteredAt, filter.died) &&
    isWithin(letter.updatedAt, filter.updated) &&
    isWithin(failure?.lastFailedAt ?? null, filter.lastFailed) &&
    matchesIds(letter, filter) &&
    matchesContent(letter, filter) &&
    (filter.dueBy === undefined || (facts?.nextRedriveAt ?? Number.POSITIVE_INFINITY) <= filter.dueBy)
  )
}

function matchesIds(letter: Item, filter: LetterFilter): boolean {
  const traces = letter.headers.flatMap(([name, value]) =>
    name === 'traceparent' && value !== null ? [Buffer.from(value).toString().split('-')[1] ?? ''] : [],
  )
  return (
    isAmong(letter.rootId, filter.letterIds) &&
    isAmong(letter.sourceId ?? 'none', filter.sourceIds) &&
    isAmong(letter.reference, filter.references) &&
    isAmong(traces[0] ?? 'none', filter.traceIds)
  )
}

function matchesContent(letter: Item, filter: LetterFilter): boolean {
  const { payloadText } = filter
  return (
    (payloadText === undefined || hasText(Buffer.from(letter.payload).toString(), payloadText)) &&
    (filter.key === undefined || (letter.key !== null && Buffer.compare(letter.key, filter.key) === 0)) &&
    (filter.text === undefined || hasText(letter.failure?.message ?? '', filter.text)) &&
    (filter.header === undefined || hasHeader(letter, filter.header)) &&
    (filter.json === undefined || hasJson(letter.payload, filter.json))
  )
}

/** The letters that a query finds, in its order. */
export function expectedLetters(
  letters: readonly Item[],
  query: Omit<RangesQuery, 'order'> & Readonly<{ order: LetterOrder }>,
) {
  const { filter, order, isDescending } = query
  const sign = isDescending ? -1 : 1
  const compare = (a: Item, b: Item): number =>
    (a[order] ?? 0) - (b[order] ?? 0) || (a.rootId < b.rootId ? -1 : 1)
  return letters.filter((letter) => matchesFilter(letter, filter)).toSorted((a, b) => sign * compare(a, b))
}

function isAmong<T>(value: T, values: readonly T[] | undefined): boolean {
  return values === undefined || values.includes(value)
}

function isWithin(at: Instant | null, times: LetterFilter['died']): boolean {
  if (times === undefined || (times.from === undefined && times.until === undefined)) return true
  if (at === null) return false
  return at >= (times.from ?? Number.NEGATIVE_INFINITY) && at <= (times.until ?? Number.POSITIVE_INFINITY)
}

function hasText(message: string, text: string): boolean {
  return message.toLowerCase().includes(text.toLowerCase())
}

function hasHeader(letter: Item, wanted: NonNullable<LetterFilter['header']>): boolean {
  return letter.headers.some(([name, value]) => {
    if (name !== wanted.name) return false
    if (wanted.value === undefined) return true
    return value !== null && Buffer.from(value).equals(Buffer.from(wanted.value))
  })
}

function hasJson(payload: Uint8Array, wanted: NonNullable<LetterFilter['json']>): boolean {
  let at: unknown
  try {
    at = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload), asBigInt)
  } catch {
    return false
  }
  for (const step of wanted.path) {
    const isStep = Array.isArray(at)
      ? typeof step === 'number'
      : typeof at === 'object' && at !== null && typeof step === 'string' && Object.hasOwn(at, step)
    if (!isStep) return false
    at = (at as Record<string | number, unknown>)[step]
  }
  const { value } = wanted
  return at === (typeof value === 'object' && value !== null ? scaled(value.number) : value)
}

function asBigInt(_name: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === 'number' ? scaled(context?.source ?? '') : value
}

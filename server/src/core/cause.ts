/**
 * The cause of a letter: letters whose failures are equal without their variable parts (numbers, ids, times,
 * quoted texts) have the same cause and form a group. The time is linear in the text read, which is bounded.
 */
// biome-ignore lint/style/noRestrictedImports: a hash function is pure and does no I/O.
import { hash } from 'node:crypto'
import { errorClassMax, failureReasonMax } from './failure-bounds.ts'
import type { Failure, Origin } from './item.ts'
import { normalize } from './normalize.ts'
import { readHead, toSlug } from './reason.ts'
import { cutText, toStorableText } from './storable-text.ts'

export type Cause = Readonly<{
  /** 16 hexadecimal digits: a hash of the fields below and the top frames of the stack. */
  fingerprint: string
  /** The name of the queue, topic or webhook that the letter came from. */
  origin: string
  /** The code of the failure, matched exactly. */
  reason: string
  slug: string
  errorClass: string
  /** The message with its variable parts replaced. */
  title: string
  fold: Fold
}>

/**
 * How much of a cause is left out, see `foldCause`. 0: nothing. 1: slug and title. 2: the error class too.
 */
export type Fold = 0 | 1 | 2

const messageRead = 2_000
const titleMax = 300
const originMax = 512
const stackRead = 4_000
const framesRead = 5

export function toCause(failure: Failure | null, origin: Pick<Origin, 'name'>): Cause {
  const message = failure?.message ?? ''
  const name = origin.name.slice(0, originMax)
  const reason = cutText(failure?.reason || 'unknown', failureReasonMax)
  const slug = slugForHead(readHead(message))
  const errorClass = cutText(failure?.errorClass ?? '', errorClassMax)
  const title = normalize(message.slice(0, messageRead)).slice(0, titleMax)
  const stack = (failure?.stack ?? '').slice(0, stackRead)
  // The lengths keep two causes apart whose texts only join to the same string.
  const lengths = `${name.length}/${reason.length}/${slug.length}/${errorClass.length}/${title.length}/`
  return getOrCreate(causes, lengths + name + reason + slug + errorClass + title + stack, () => {
    const cause = {
      origin: toStorableText(name),
      reason: toStorableText(reason),
      slug,
      errorClass: toStorableText(errorClass),
      title: toStorableText(title),
    }
    const parts = [...Object.values(cause), topFrames(stack)]
    return { ...cause, fold: 0, fingerprint: hashText(parts.join('\u0000')) }
  })
}

/** The error class of a letter, cut as in its group. */
export function toErrorClass(failure: Failure | null): string {
  return toStorableText(cutText(failure?.errorClass ?? '', errorClassMax))
}

/** Many letters share a cause, so results are cached. A full cache is emptied; entries in use soon return. */
const slugs = new Map<string, string>()
const causes = new Map<string, Cause>()
const cachedMax = 2_000

function getOrCreate<T>(map: Map<string, T>, key: string, create: (key: string) => T): T {
  let value = map.get(key)
  if (value === undefined) {
    value = create(key)
    if (map.size >= cachedMax) map.clear()
    // Copy the key: a slice would keep the whole text that it was cut from in memory.
    map.set(Buffer.from(key).toString(), value)
  }
  return value
}

/** A queue with this many groups gets no more groups for single causes. */
const causesMax = 5_000
/** A queue with this many groups gets no more groups for single error classes. */
const groupsMax = 10_000
/** The error class of a group whose letters may have any class. */
export const anyClass = '(others)'

/**
 * Decides about a cause that has no group in a queue with `groupCount` groups. Undefined: create a group for
 * it. Otherwise: use the group of the returned coarser cause, or decide again if that has no group either.
 *
 * Too many groups help nobody, so a queue above 5,000 groups keeps new letters together by origin, reason and
 * error class; counts by these stay exact. Above 10,000 groups the error class is left out as well. Groups
 * that exist are used regardless of their number.
 */
export function foldCause(cause: Cause, groupCount: number): Cause | undefined {
  const needed: Fold = groupCount < causesMax ? 0 : groupCount < groupsMax ? 1 : 2
  if (cause.fold >= needed) return undefined
  const fold: Fold = cause.fold === 0 ? 1 : 2
  const rest = {
    origin: cause.origin,
    reason: cause.reason,
    slug: 'other',
    errorClass: fold === 2 ? anyClass : cause.errorClass,
    title: '(others)',
  }
  return { ...rest, fold, fingerprint: hashText([...Object.values(rest), fold].join('\u0000')) }
}

/** Digits matter only in codes. So heads that differ in other digits share one cache entry. */
function slugForHead(head: string): string {
  const known = slugs.get(head)
  if (known !== undefined) return known
  const masked = head.replaceAll(/[0-9]/g, '0')
  const slug = getOrCreate(slugs, masked, toSlug)
  return slug.includes('0') ? getOrCreate(slugs, head, toSlug) : slug
}

function hashText(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 16)
}

/** The first stack frames, without line numbers, which change with every release. */
function topFrames(stack: string): string {
  const frames: string[] = []
  for (const line of stack.split('\n')) {
    const text = line.trim()
    if (!/^(at\s|File\s|\S+\.(go|rb|py|php):)/.test(text)) continue
    frames.push(text.replaceAll(/:[0-9]+|line [0-9]+/g, '').slice(0, 200))
    if (frames.length === framesRead) break
  }
  return frames.join('\u0000')
}

/**
 * Which letters have the same cause: those whose failure is the same once its variable parts (numbers, ids,
 * times, quoted texts) are left out. Linear in the length of what is read, which is bounded.
 */
// biome-ignore lint/style/noRestrictedImports: a hash is pure, and does no I/O.
import { hash } from 'node:crypto'
import { cutText, errorClassMax, failureReasonMax } from './failure-bounds.ts'
import type { Failure, Origin } from './item.ts'
import { normalize } from './normalize.ts'
import { headOf, slugOf } from './reason.ts'

export type Cause = Readonly<{
  /** 16 hexadecimal digits over everything below and the top frames. */
  fingerprint: string
  /** What people call the place the letter came from. */
  origin: string
  /** The code of the failure, matched exactly. */
  reason: string
  slug: string
  errorClass: string
  /** The message with its variable parts replaced. */
  title: string
}>

const messageRead = 2_000
const titleMax = 300
const originMax = 512
const stackRead = 4_000
const framesRead = 5

export function causeOf(failure: Failure | null, origin: Pick<Origin, 'name'>): Cause {
  const message = failure?.message ?? ''
  const name = origin.name.slice(0, originMax)
  const reason = cutText(failure?.reason || 'unknown', failureReasonMax)
  const slug = slugOfHead(headOf(message))
  const errorClass = cutText(failure?.errorClass ?? '', errorClassMax)
  const title = normalize(message.slice(0, messageRead)).slice(0, titleMax)
  const stack = (failure?.stack ?? '').slice(0, stackRead)
  // With the lengths no two can be taken for each other, whatever characters they have.
  const lengths = `${name.length}/${reason.length}/${slug.length}/${errorClass.length}/${title.length}/`
  return remembered(causes, lengths + name + reason + slug + errorClass + title + stack, () => {
    const cause = {
      origin: plain(name),
      reason: plain(reason),
      slug,
      errorClass: plain(errorClass),
      title: plain(title),
    }
    const parts = [...Object.values(cause), topFrames(stack)]
    return { ...cause, fingerprint: fingerprintOf(parts.join('\u0000')) }
  })
}

/** The class of a letter, as groups have it. */
export function classOf(failure: Failure | null): string {
  return plain(cutText(failure?.errorClass ?? '', errorClassMax))
}

/** What many letters share is worked out once. Emptied when it is full: what is in use comes back at once. */
const slugs = new Map<string, string>()
const causes = new Map<string, Cause>()
const rememberedMax = 2_000

function remembered<T>(map: Map<string, T>, key: string, make: (key: string) => T): T {
  let made = map.get(key)
  if (made === undefined) {
    made = make(key)
    if (map.size >= rememberedMax) map.clear()
    // A copy: a part of a long text would keep all of it.
    map.set(Buffer.from(key).toString(), made)
  }
  return made
}

/** More causes than these are no help to anybody: the letters of further ones are kept together, see `foldedCause`. */
const causesMax = 5_000
/** Causes of a queue and what further ones are kept together as: beyond that not even the class is told apart. */
const groupsMax = 10_000
/** The class of letters whose classes are not told apart. */
export const anyClass = '(others)'

/** How far a cause is folded: not at all, to its class, to its origin and reason. */
export type Fold = 0 | 1 | 2

/** How far a cause that is not there yet is folded in a queue that has so many groups. */
export function foldFor(groups: number): Fold {
  return groups < causesMax ? 0 : groups < groupsMax ? 1 : 2
}

/**
 * For the letters of a queue that has too many causes to keep apart. 1: all of one origin, reason and error class, so
 * that those are still counted exactly. 2: where there are too many of these, all of one origin and reason.
 */
export function foldedCause(cause: Cause, fold: Fold): Cause {
  if (fold === 0) return cause
  const rest = {
    origin: cause.origin,
    reason: cause.reason,
    slug: 'other',
    errorClass: fold === 2 ? anyClass : cause.errorClass,
    title: '(others)',
  }
  return { ...rest, fingerprint: fingerprintOf([...Object.values(rest), fold].join('\u0000')) }
}

/** Which digits there are matters only where they are a code: so what is remembered of one number is so for others. */
function slugOfHead(head: string): string {
  const known = slugs.get(head)
  if (known !== undefined) return known
  const masked = head.replaceAll(/[0-9]/g, '0')
  const slug = remembered(slugs, masked, slugOf)
  return slug.includes('0') ? remembered(slugs, head, slugOf) : slug
}

/** As any store keeps it: failures may hold what no text column takes, and a cut may halve a character. */
function plain(text: string): string {
  return text.replaceAll('\0', ' ').toWellFormed()
}

function fingerprintOf(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 16)
}

/** Where it failed, without line numbers: those change with every release. */
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

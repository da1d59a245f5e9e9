/**
 * Which letters have the same cause: those whose failure is the same once its variable parts (numbers, ids,
 * times, quoted texts) are left out. Linear in the length of what is read, which is bounded.
 */
// biome-ignore lint/style/noRestrictedImports: a hash is pure, and does no I/O.
import { hash } from 'node:crypto'
import type { Failure, Origin } from './item.ts'
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
const classMax = 300
const originMax = 512
const reasonMax = 100
const stackRead = 4_000
const framesRead = 5

export function causeOf(failure: Failure | null, origin: Pick<Origin, 'name'>): Cause {
  const message = failure?.message ?? ''
  const cause = {
    origin: plain(origin.name, originMax),
    reason: plain(failure?.reason || 'unknown', reasonMax),
    slug: remembered(slugs, headOf(message), slugOf),
    errorClass: plain(failure?.errorClass ?? '', classMax),
    title: plain(normalize(message.slice(0, messageRead)), titleMax),
  }
  const parts = [
    ...Object.values(cause),
    remembered(frames, (failure?.stack ?? '').slice(0, stackRead), topFrames),
  ]
  return { ...cause, fingerprint: remembered(fingerprints, parts.join('\u0000'), fingerprintOf) }
}

/** What many letters share is worked out once. Emptied when it is full: what is in use comes back at once. */
const slugs = new Map<string, string>()
const frames = new Map<string, string>()
const fingerprints = new Map<string, string>()
const rememberedMax = 2_000

function remembered(map: Map<string, string>, key: string, make: (key: string) => string): string {
  let made = map.get(key)
  if (made === undefined) {
    made = make(key)
    if (map.size >= rememberedMax) map.clear()
    // A copy: a part of a long text would keep all of it.
    map.set(Buffer.from(key).toString(), made)
  }
  return made
}

/** For the letters of a queue that has too many causes to keep apart: all that share the rest. */
export function otherCause(cause: Cause): Cause {
  const rest = {
    origin: cause.origin,
    reason: cause.reason,
    slug: 'other',
    errorClass: '',
    title: '(others)',
  }
  return { ...rest, fingerprint: fingerprintOf(Object.values(rest).join('\u0000')) }
}

/** As any store keeps it: failures may hold what no text column takes, and a cut may halve a character. */
function plain(text: string, lengthMax: number): string {
  const cut = text.slice(0, lengthMax)
  return cut.includes('\0') ? cut.replaceAll('\0', ' ').toWellFormed() : cut.toWellFormed()
}

function fingerprintOf(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 16)
}

/** One pass, no part of it can be read in two ways: no input makes it slow. */
const variable =
  /"[^"\n]{0,200}"|'[^'\n]{0,200}'|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|0x[0-9a-fA-F]+|\b(?=[a-zA-Z]*[0-9])[0-9A-Za-z]{12,}\b|[0-9]+(?:[.:,][0-9]+)*/g

export function normalize(message: string): string {
  return message
    .replaceAll(variable, (part) => (part.startsWith('"') || part.startsWith("'") ? '<text>' : '<n>'))
    .replaceAll(/\s+/g, ' ')
    .trim()
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

/**
 * Decides which group gets a letter whose cause has no group of its own: an online template miner. Its state
 * are the stored groups of the queue, so every server decides alike, and a restart forgets nothing.
 *
 * A letter joins the oldest group that describes it. Otherwise a group may become wider: at once if the
 * stacks are equal or the differing words have the shape of data, and for other words when enough groups
 * differ only in them. Codes never merge, because groups with different codes are in different buckets.
 */
import { readSignature, type Signature, writeSignature } from './signature.ts'
import type { Token } from './template.ts'
import { toWiderTitle } from './title.ts'
import { covers, type NewHole, readPlace, widenTemplate } from './widen-template.ts'

export type GroupTemplate = Readonly<{ id: number; template: string }>
export type GroupMatch =
  /** The group describes the letter. */
  | Readonly<{ kind: 'use'; id: number }>
  /**
   * The group gets this template and title. It now describes the groups `merged` too, so they become part of
   * it.
   */
  | Readonly<{ kind: 'widen'; id: number; template: string; title: string; merged: readonly number[] }>
  | Readonly<{ kind: 'create' }>

/** A bucket with more groups than this compares a new cause with the oldest of them only. */
export const candidatesMax = 200

/** The share of equal words in messages with equal stacks, and in messages of which one has no stack. */
const similarityMin = { withStack: 0.3, withoutStack: 0.5 }

type Candidate = Readonly<{ id: number; signature: Signature }>

/** `candidates`: the groups of the same queue and bucket, the oldest first. */
export function matchGroup(template: string, candidates: readonly GroupTemplate[]): GroupMatch {
  const wanted = readCached(template)
  const known: Candidate[] = candidates
    .slice(0, candidatesMax)
    .map((each) => ({ id: each.id, signature: readCached(each.template) }))
    .filter(({ signature }) => hasCompatibleStack(signature, wanted))
  const describing = known.find(({ signature }) => describes(signature, wanted))
  if (describing !== undefined) return { kind: 'use', id: describing.id }
  const tried = new Set<string>()
  for (const candidate of known) {
    const wider = widen(candidate.signature, wanted)
    if (wider === undefined) continue
    const text = writeSignature(wider.signature)
    if (tried.has(text)) continue
    tried.add(text)
    const covered = known.filter((each) => each === candidate || describes(wider.signature, each.signature))
    if (!hasEnoughValues(wider, [...covered.map(({ signature }) => signature), wanted])) continue
    const [oldest, ...others] = covered.map(({ id }) => id)
    return { kind: 'widen', id: oldest as number, template: text, title: toWiderTitle(text), merged: others }
  }
  return { kind: 'create' }
}

/** Whether one of the templates describes the letters of the other one. */
export function areAlike(a: string, b: string): boolean {
  const [first, second] = [readCached(a), readCached(b)]
  return hasCompatibleStack(first, second) && (describes(first, second) || describes(second, first))
}

const signatures = new Map<string, Signature>()
const cachedMax = 5_000

function readCached(template: string): Signature {
  let signature = signatures.get(template)
  if (signature === undefined) {
    signature = readSignature(template)
    if (signatures.size >= cachedMax) signatures.clear()
    signatures.set(template, signature)
  }
  return signature
}

/** Whether the group needs no change to have the letter. */
function describes(group: Signature, letter: Signature): boolean {
  return (
    covers(group.message, letter.message) &&
    (letter.root.length === 0 || covers(group.root, letter.root)) &&
    (letter.frames.length === 0 || group.frames.length > 0) &&
    letter.chain.length <= group.chain.length
  )
}

/** Whether the stacks can be of one cause: equal where both are known. */
function hasCompatibleStack(a: Signature, b: Signature): boolean {
  if (a.frames.length > 0 && b.frames.length > 0 && !hasCommonFrames(a.frames, b.frames)) return false
  if (a.rootFrame !== '' && b.rootFrame !== '' && a.rootFrame !== b.rootFrame) return false
  return hasCompatibleChain(a, b)
}

/** The thrower is equal, and so is another frame if both have more: a frame may be missing or be added. */
function hasCommonFrames(a: readonly string[], b: readonly string[]): boolean {
  if (a[0] !== b[0]) return false
  return a.length === 1 || b.length === 1 || a.slice(1).some((frame) => b.slice(1).includes(frame))
}

function hasCompatibleChain(a: Signature, b: Signature): boolean {
  const [shorter, longer] = a.chain.length <= b.chain.length ? [a, b] : [b, a]
  if (shorter.chain.some((errorClass, index) => errorClass !== longer.chain[index])) return false
  if (shorter.chain.length < longer.chain.length) return shorter.isCut
  return shorter.rootCodes.toSorted().join(' ') === longer.rootCodes.toSorted().join(' ')
}

/** `message` and `root`: the places that become data. */
type Wider = Readonly<{ signature: Signature; message: readonly NewHole[]; root: readonly NewHole[] }>

/**
 * Whether each new hole had enough values. They are counted place by place: messages that differ in a name
 * say nothing about another word that differs.
 */
function hasEnoughValues({ signature, message, root }: Wider, signatures: readonly Signature[]): boolean {
  const hasEnough = (
    { index, valuesNeeded }: NewHole,
    read: (each: Signature) => readonly Token[],
  ): boolean => {
    if (valuesNeeded <= 2) return true
    const template = read(signature)
    const values = signatures.map(read).map((tokens) => readPlace(template, tokens, index))
    return values.includes(undefined) || new Set(values).size >= valuesNeeded
  }
  return (
    message.every((place) => hasEnough(place, (each) => each.message)) &&
    root.every((place) => hasEnough(place, (each) => each.root))
  )
}

function widen(group: Signature, letter: Signature): Wider | undefined {
  const isSameStack = group.frames.length > 0 && letter.frames.length > 0
  const rule = {
    similarityMin: isSameStack ? similarityMin.withStack : similarityMin.withoutStack,
    isLoose: isSameStack,
    mayBeFreeText: isSameStack,
  }
  const rootRule = { ...rule, similarityMin: similarityMin.withoutStack, mayBeFreeText: false }
  const message = widenTemplate(group.message, letter.message, rule)
  const root =
    group.root.length === 0 || letter.root.length === 0
      ? { tokens: group.root.length === 0 ? letter.root : group.root, places: [] }
      : widenTemplate(group.root, letter.root, rootRule)
  if (message === undefined || root === undefined) return undefined
  const longer = letter.chain.length > group.chain.length ? letter : group
  const signature: Signature = {
    message: message.tokens,
    root: root.tokens,
    chain: longer.chain,
    rootCodes: longer.rootCodes,
    rootFrame: group.rootFrame === '' ? letter.rootFrame : group.rootFrame,
    frames: group.frames.length === 0 ? letter.frames : group.frames,
    isCut: group.isCut && letter.isCut,
  }
  return { signature, message: message.places, root: root.places }
}

/**
 * The cause of a letter decides its group. With a usable stack it is the error class, the root cause and the
 * functions of the application that threw it; otherwise the class and the template of the message. Codes
 * (status, errno, SQLSTATE, names of fields) always separate. The time is linear in the text read, which is
 * bounded.
 *
 * `toCause` is a pure function of the failure. `grouping/match-group.ts` decides which stored group a new
 * cause belongs to.
 */
// biome-ignore lint/style/noRestrictedImports: a hash function is pure and does no I/O.
import { hash } from 'node:crypto'
import { type MaskedMessage, maskMessage } from '../grouping/mask-message.ts'
import { readStack, type Stack, stackRead } from '../grouping/read-stack.ts'
import type { CompiledRules } from '../grouping/rules.ts'
import { type Signature, toShape, writeSignature } from '../grouping/signature.ts'
import { toSlug } from '../grouping/slug.ts'
import { isVariable, readTemplate } from '../grouping/template.ts'
import { toTitle } from '../grouping/title.ts'
import type { Failure, Origin } from '../items/item.ts'
import { cutText, toStorableText } from '../text/storable-text.ts'
import { errorClassMax, failureReasonMax, fingerprintMax } from './failure-bounds.ts'

export type Cause = Readonly<{
  /** 16 hexadecimal digits: a hash of everything that separates causes, and the origin. */
  fingerprint: string
  /**
   * The fingerprint of the group that this one is part of from its creation; empty: none. Groups with a cause
   * that a worker named are part of one group, although their error classes can differ.
   */
  parent: string
  /** The same without the origin: equal causes of different queues have equal keys. */
  causeKey: string
  /**
   * Only groups of one origin and bucket can be one group: 16 hexadecimal digits of the error code,
   * error class, codes, and the first word of a message without a class. Empty: the cause is never compared
   * with other groups.
   */
  bucket: string
  /** The name of the queue, topic or webhook that the letter came from. */
  origin: string
  /** The code of the failure, matched exactly. */
  errorCode: string
  slug: string
  errorClass: string
  /** The message without its variable parts, as a person would write it. */
  title: string
  /** The words that the template miner compares, see `grouping/signature.ts`. */
  template: string
  /** Codes of the message: HTTP status, errno, SQLSTATE, names of fields and constraints. */
  codes: readonly string[]
  fold: Fold
}>

/**
 * How much of a cause is left out, see `foldCause`. 0: nothing. 1: slug and title. 2: the error class too.
 */
export type Fold = 0 | 1 | 2

const messageRead = 2_000
const originMax = 512

/** `rules`: those of the dead queue. `payload`: read only by rules that name a path. */
export function toCause(
  failure: Failure | null,
  origin: Pick<Origin, 'name'>,
  rules?: CompiledRules,
  payload?: Uint8Array,
): Cause {
  const given = (failure?.message ?? '').slice(0, messageRead)
  const applied = rules?.apply(given, payload)
  const masked = maskMessage((applied?.message ?? given).slice(0, messageRead))
  const name = origin.name.slice(0, originMax)
  const errorCode = cutText(failure?.errorCode || 'unknown', failureReasonMax)
  const errorClass = cutText(failure?.errorClass ?? '', errorClassMax)
  const stack = (failure?.stack ?? '').slice(0, stackRead)
  // The lengths keep two causes apart whose texts only join to the same string.
  const lengths = `${name.length}/${errorCode.length}/${errorClass.length}/${masked.text.length}/`
  const key = `${rules?.key ?? ''}/${lengths}${name}${errorCode}${errorClass}${masked.text}${stack}`
  const cause = getOrCreate(causes, key, () =>
    createCause(
      masked,
      readStack(stack),
      {
        origin: toStorableText(name),
        errorCode: toStorableText(errorCode),
        errorClass: toStorableText(errorClass),
      },
      rules,
    ),
  )
  if (failure?.fingerprint) return nameCause(cause, failure.fingerprint)
  return applied === undefined ? cause : addCodes(cause, applied.codes)
}

/** The cause as the worker named it: equal names are one cause. */
function nameCause(cause: Cause, given: string): Cause {
  const name = toStorableText(cutText(given, fingerprintMax))
  const { origin, errorCode, errorClass } = cause
  return {
    ...cause,
    fingerprint: hashTexts(['given', name, origin, errorCode, errorClass]),
    parent: hashTexts(['given', name]),
    causeKey: hashTexts(['given', name]),
    bucket: '',
    template: '',
    title: cause.title === '' ? name : cause.title,
  }
}

/** The cause with more codes that separate it from others: they are part of its identity and of its title. */
export function addCodes(cause: Cause, codes: readonly string[]): Cause {
  if (codes.length === 0) return cause
  const added = codes.map((code) => toStorableText(code))
  return {
    ...cause,
    fingerprint: hashTexts([cause.fingerprint, ...added]),
    causeKey: hashTexts([cause.causeKey, ...added]),
    bucket: hashTexts([cause.bucket, ...added]),
    title: `${cause.title} [${added.join(', ')}]`,
    codes: [...cause.codes, ...added],
  }
}

/** The error class of a letter, cut as in its group. */
export function toErrorClass(failure: Failure | null): string {
  return toStorableText(cutText(failure?.errorClass ?? '', errorClassMax))
}

type Facts = Readonly<{ origin: string; errorCode: string; errorClass: string }>

function createCause(
  masked: MaskedMessage,
  stack: Stack,
  { origin, errorCode, errorClass }: Facts,
  rules: CompiledRules | undefined,
): Cause {
  const signature = createSignature(masked, stack, rules)
  const codes = masked.codes.map((code) => toStorableText(code))
  const key = [errorCode, errorClass, codes.toSorted().join('\n'), toAnchor(signature, errorClass)]
  const shape = toShape(signature)
  return {
    fingerprint: hashTexts([origin, ...key, shape]),
    parent: '',
    causeKey: hashTexts([...key, shape]),
    bucket: hashTexts(key),
    origin,
    errorCode,
    slug: toStorableText(toSlug(masked)),
    errorClass,
    title: toTitle(masked.text, signature),
    template: writeSignature(signature),
    codes,
    fold: 0,
  }
}

function createSignature(masked: MaskedMessage, stack: Stack, rules: CompiledRules | undefined): Signature {
  const rootMessage = stack.rootMessage.slice(0, messageRead)
  const root = maskMessage((rules?.rewrite(rootMessage) ?? rootMessage).slice(0, messageRead))
  const rootCodes = new Set([...root.codes, ...stack.codes].map((code) => toStorableText(code)))
  for (const code of masked.codes) rootCodes.delete(code)
  return {
    message: readTemplate(toStorableText(masked.text)),
    chain: stack.chain.map((errorClass) => toStorableText(errorClass)),
    root: readTemplate(toStorableText(root.text)),
    rootCodes: [...rootCodes],
    rootFrame: toStorableText(stack.rootFrame),
    frames: stack.frames.map((frame) => toStorableText(frame)),
    isCut: stack.isCut || stack.frames.length === 0,
  }
}

/** Failures without a class have the first word of their message in its place. */
function toAnchor({ message: [first, second] }: Signature, errorClass: string): string {
  if (errorClass !== '') return ''
  if (first === undefined || isVariable(first.kind)) return '*'
  // Japanese starts with the subject, which may be a name.
  return second?.separator === '' && !isVariable(second.kind) ? '*' : first.text
}

/** Many letters share a cause, so results are cached. A full cache is emptied; entries soon return. */
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
  const { origin, errorCode } = cause
  const errorClass = fold === 2 ? anyClass : cause.errorClass
  const key = [errorCode, 'other', errorClass, '(others)', String(fold)]
  return {
    origin,
    errorCode,
    slug: 'other',
    errorClass,
    title: '(others)',
    template: '',
    codes: [],
    bucket: '',
    fold,
    parent: '',
    fingerprint: hashTexts([origin, ...key]),
    causeKey: hashTexts(key),
  }
}

function hashTexts(parts: readonly string[]): string {
  return hash('sha256', parts.join('\u0000'), 'hex').slice(0, 16)
}

/**
 * Rules of a dead queue about its messages, which a person writes: a part of the message is data (a
 * **variable**), or a part of the message or of the payload separates causes (a **code**). Patterns have the
 * syntax of RE2, so their time is linear in the text.
 */
// biome-ignore lint/style/noRestrictedImports: a hash function is pure and does no I/O.
import { hash } from 'node:crypto'
import { RE2JS } from 're2js'

/** `name`: a variable is shown as `<name>`, a code as `name=value`. */
export type GroupingRule = Readonly<{ name: string; as: 'variable' | 'code' }> &
  (
    | Readonly<{
        /** Matches in the message; the first group of the pattern, if it has one. */
        pattern: string
      }>
    | Readonly<{
        /** A text, number or boolean in a JSON payload. As a variable: where it is in the message. */
        path: readonly (string | number)[]
      }>
  )

export const ruleBounds = {
  rulesMax: 20,
  patternMax: 500,
  /** Instructions of all patterns of a queue. */
  sizeMax: 2_000,
  /** Larger payloads are not read. */
  payloadMax: 2 ** 16,
  /** Longer values are cut. */
  valueMax: 200,
} as const
export const ruleNamePattern = '^[a-z][a-z_]{0,29}$'

export type AppliedRules = Readonly<{ message: string; codes: readonly string[] }>

export interface CompiledRules {
  /** Equal for equal rules. */
  readonly key: string
  readonly readsPayload: boolean
  /** `payload` is read only if a rule needs it. */
  apply(message: string, payload: Uint8Array | undefined): AppliedRules
  /** Shows the variables of a text. */
  rewrite(text: string): string
}

/** Undefined: there are no rules. Rejects invalid patterns: check them with `findRuleProblem` first. */
export function compileRules(rules: readonly GroupingRule[] | undefined): CompiledRules | undefined {
  if (rules === undefined || rules.length === 0) return undefined
  const known = compiledByList.get(rules)
  if (known !== undefined) return known
  const text = JSON.stringify(rules)
  let compiled = compiledByText.get(text)
  if (compiled === undefined) {
    compiled = compile(rules, text)
    if (compiledByText.size >= compiledMax) compiledByText.clear()
    compiledByText.set(text, compiled)
  }
  compiledByList.set(rules, compiled)
  return compiled
}

const compiledByList = new WeakMap<readonly GroupingRule[], CompiledRules>()
const compiledByText = new Map<string, CompiledRules>()
const compiledMax = 200

/** A sentence about the first problem; undefined: the rules are valid. */
export function findRuleProblem(rules: readonly GroupingRule[]): string | undefined {
  if (rules.length > ruleBounds.rulesMax)
    return `there are ${rules.length} rules; the limit is ${ruleBounds.rulesMax}`
  let size = 0
  for (const rule of rules) {
    if (!('pattern' in rule)) continue
    if (rule.pattern.length > ruleBounds.patternMax)
      return `the pattern of ${rule.name} has ${rule.pattern.length} characters; the limit is ${ruleBounds.patternMax}`
    try {
      const pattern = RE2JS.compile(rule.pattern)
      if (pattern.matches('')) return `the pattern of ${rule.name} matches an empty text`
      size += pattern.programSize()
    } catch (error) {
      return `the pattern of ${rule.name} is not valid RE2: ${error instanceof Error ? error.message : String(error)}`
    }
  }
  if (size <= ruleBounds.sizeMax) return undefined
  return `the patterns have ${size} instructions together; the limit is ${ruleBounds.sizeMax}`
}

type PatternRule = Readonly<{ name: string; as: GroupingRule['as']; pattern: RE2JS }>

function compile(rules: readonly GroupingRule[], text: string): CompiledRules {
  const patterns = rules.flatMap((rule): PatternRule[] =>
    'pattern' in rule ? [{ ...rule, pattern: RE2JS.compile(rule.pattern) }] : [],
  )
  const paths = rules.flatMap((rule) => ('path' in rule ? [rule] : []))
  const variables = patterns.filter(({ as }) => as === 'variable')
  const rewrite = (given: string): string =>
    variables.reduce((message, rule) => replaceMatches(message, rule), given)
  return {
    key: hash('sha256', text, 'hex').slice(0, 16),
    readsPayload: paths.length > 0,
    rewrite,
    apply: (given, payload) => {
      const codes = patterns.flatMap((rule) => (rule.as === 'code' ? readCode(given, rule) : []))
      let message = rewrite(given)
      const json = paths.length === 0 ? undefined : readJson(payload)
      for (const { name, as, path } of paths) {
        const value = readValue(json, path)
        if (value === undefined) continue
        if (as === 'code') codes.push(`${name}=${value}`)
        else message = message.replaceAll(value, `<${name}>`)
      }
      return { message, codes }
    },
  }
}

function replaceMatches(message: string, { name, pattern }: PatternRule): string {
  const matcher = pattern.matcher(message)
  let shown = ''
  let end = 0
  while (matcher.find()) {
    const group = matcher.groupCount() > 0 && matcher.start(1) >= 0 ? 1 : 0
    if (matcher.end(group) === matcher.start(group)) continue
    shown += `${message.slice(end, matcher.start(group))}<${name}>`
    end = matcher.end(group)
  }
  return shown + message.slice(end)
}

function readCode(message: string, { name, pattern }: PatternRule): string[] {
  const matcher = pattern.matcher(message)
  if (!matcher.find()) return []
  const value = (matcher.groupCount() > 0 ? matcher.group(1) : null) ?? matcher.group()
  return value ? [`${name}=${value.slice(0, ruleBounds.valueMax)}`] : []
}

function readJson(payload: Uint8Array | undefined): unknown {
  if (payload === undefined || payload.byteLength === 0 || payload.byteLength > ruleBounds.payloadMax)
    return undefined
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload))
  } catch {
    return undefined
  }
}

/** An empty text is no value: it would be found everywhere. */
function readValue(json: unknown, path: readonly (string | number)[]): string | undefined {
  let part = json
  for (const step of path) {
    if (part === null || typeof part !== 'object' || Array.isArray(part) !== (typeof step === 'number'))
      return undefined
    if (!Object.hasOwn(part, step)) return undefined
    part = (part as Record<string | number, unknown>)[step]
  }
  if (typeof part !== 'string' && typeof part !== 'number' && typeof part !== 'boolean') return undefined
  return String(part).slice(0, ruleBounds.valueMax) || undefined
}

import { formatDuration, parseDuration } from '../core/duration.ts'
import { formatByteSize, parseByteSize } from './byte-size.ts'
import { Secret } from './secret.ts'
import { parseReference, showReference } from './secret-reference.ts'

export type SettingType =
  | 'string'
  | 'integer'
  | 'boolean'
  | 'duration'
  | 'bytes'
  | 'choice'
  | 'list'
  | 'secret'

/** One row of the settings table. Help, documentation and validation are all made from it. */
export type Setting<T> = Readonly<{
  type: SettingType
  sentence: string
  default: T
  /** What may be written, as the end of "it must be …". */
  allowed: string
  /** The same in short, next to the type: `0 to 65535`. Empty where the type says it all. */
  bounds: string
  /** For a choice: what there is to choose from. */
  choices: readonly string[]
  /** Undefined when the text is not allowed. */
  parse(text: string): T | undefined
  /** For people; never shows a secret. */
  format(value: T): string
  /** A variable that systems of the kind are known to have, beside the one that follows from the name. */
  known: KnownVariable | undefined
}>

/** Forgiving, as its readers elsewhere are: `mend` gives the nearest value allowed, or undefined for no value. */
export type KnownVariable = Readonly<{ name: string; mend(text: string): string | undefined }>

type Given<D> = Readonly<{ sentence: string; default?: D }>
type Absent = undefined

export function string<D extends string | Absent = Absent>(
  given: Given<D> & { allowed?: string; pattern?: RegExp; format?: (value: string) => string },
): Setting<string | D> {
  return row({
    type: 'string',
    allowed: given.allowed ?? 'text that is not empty',
    parse: (text) => ((given.pattern ?? /\S/).test(text) ? text : undefined),
    format: given.format ?? ((value) => value),
    ...common<string | D>(given),
  })
}

export function integer<D extends number | Absent = Absent>(
  given: Given<D> & { min: number; max: number; variable?: string },
): Setting<number | D> {
  const { min, max, variable } = given
  return row({
    type: 'integer',
    allowed: `a whole number from ${min} to ${max}`,
    bounds: `${min} to ${max}`,
    parse: (text) => (/^[+-]?\d+$/.test(text) ? within(Number(text), min, max) : undefined),
    format: String,
    ...(variable !== undefined && { known: { name: variable, mend: (text) => mendInteger(text, min, max) } }),
    ...common<number | D>(given),
  })
}

export function boolean<D extends boolean | Absent = Absent>(given: Given<D>): Setting<boolean | D> {
  return row({
    type: 'boolean',
    allowed: 'true or false',
    bounds: 'true or false',
    parse: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
    format: String,
    ...common<boolean | D>(given),
  })
}

/** The value is in whole milliseconds, as timers want it. */
export function duration(
  given: Readonly<{ sentence: string; default: string; min: string; max: string }>,
): Setting<number> {
  const [min, max] = [durationMs(given.min), durationMs(given.max)]
  return row({
    type: 'duration',
    sentence: given.sentence,
    default: durationMs(given.default),
    allowed: `a duration such as 300ms, 1.5s, 5m or 24h, from ${formatMs(min)} to ${formatMs(max)}`,
    bounds: `${formatMs(min)} to ${formatMs(max)}`,
    parse: (text) => {
      try {
        return within(durationMs(text), min, max)
      } catch {
        return undefined // The reader says what a duration looks like.
      }
    },
    format: formatMs,
  })
}

/** The value is in whole bytes. */
export function bytes(
  given: Readonly<{ sentence: string; default: string; min: string; max: string }>,
): Setting<number> {
  const [min, max] = [byteCount(given.min), byteCount(given.max)]
  return row({
    type: 'bytes',
    sentence: given.sentence,
    default: byteCount(given.default),
    allowed: `a size such as 512, 16KiB or 64MB, from ${formatByteSize(min)} to ${formatByteSize(max)}`,
    bounds: `${formatByteSize(min)} to ${formatByteSize(max)}`,
    parse: (text) => {
      const size = parseByteSize(text)
      return size === undefined ? undefined : within(size, min, max)
    },
    format: formatByteSize,
  })
}

export function choice<const C extends readonly string[]>(
  given: Readonly<{ sentence: string; choices: C; default: C[number] }>,
): Setting<C[number]> {
  return row<C[number]>({
    type: 'choice',
    sentence: given.sentence,
    default: given.default,
    allowed: `one of ${given.choices.join(', ')}`,
    bounds: given.choices.join(', '),
    choices: given.choices,
    parse: (text) => given.choices.find((option) => option === text),
    format: (value) => value,
  })
}

/** Texts divided by commas; in redrive.yaml also a list. */
export function list(
  given: Readonly<{ sentence: string; default?: readonly string[] }>,
): Setting<readonly string[]> {
  return row<readonly string[]>({
    type: 'list',
    sentence: given.sentence,
    default: given.default ?? [],
    allowed: 'one or more texts divided by commas',
    parse: (text) => {
      const entries = text.split(',').map((entry) => entry.trim())
      return entries.includes('') ? undefined : entries
    },
    format: (value) => value.join(','),
  })
}

/** The text as given, which may be a reference (see secrets.ts), kept from every output. */
export function secret(given: Readonly<{ sentence: string }>): Setting<Secret | undefined> {
  return row<Secret | undefined>({
    type: 'secret',
    sentence: given.sentence,
    default: undefined,
    allowed: 'the secret itself or a reference: file:<path>, env:<NAME> or vault:<path>#<key>',
    parse: (text) => (parseReference(text) === undefined ? undefined : new Secret(text)),
    format: (value) => showReference(value),
  })
}

type Row<T> = Omit<Setting<T>, 'choices' | 'bounds' | 'format' | 'known'> & {
  choices?: readonly string[]
  bounds?: string
  known?: KnownVariable
  format: (value: NonNullable<T>) => string
}

function row<T>(given: Row<T>): Setting<T> {
  return {
    choices: [],
    bounds: '',
    known: undefined,
    ...given,
    format: (value) => (value === undefined || value === null ? '' : given.format(value)),
  }
}

/** A setting without a default is undefined until it is given, and its type says so. */
function common<T>(given: Readonly<{ sentence: string; default?: T }>): { sentence: string; default: T } {
  return { sentence: given.sentence, default: given.default as T }
}

function mendInteger(text: string, min: number, max: number): string | undefined {
  if (!/^\s*[+-]?\d+\s*$/.test(text)) return undefined
  return String(Math.min(Math.max(Number(text), min), max))
}

function within(value: number, min: number, max: number): number | undefined {
  return value >= min && value <= max ? value : undefined
}

function durationMs(text: string): number {
  return Math.ceil(parseDuration(text) / 1_000)
}

/** `10m` instead of `10m0s`: short where nothing is lost. */
function formatMs(ms: number): string {
  return formatDuration(ms * 1_000)
    .replace(/m0s$/, 'm')
    .replace(/h0m$/, 'h')
}

function byteCount(text: string): number {
  const size = parseByteSize(text)
  if (size === undefined) throw new Error(`not a size: ${text}`)
  return size
}

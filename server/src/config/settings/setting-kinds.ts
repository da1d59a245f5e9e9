import type { AlertRule } from '../../core/alerts/rule.ts'
import { formatDuration, parseDuration } from '../../core/time/duration.ts'
import type { ConfiguredConsumer, ConfiguredEntity } from '../../core/webhook/configured.ts'
import { type ChannelSetting, formatAlertChannels, parseAlertChannels } from '../alert-channels.ts'
import { formatAlertRules, parseAlertRules } from '../alert-rules.ts'
import { formatKafkaClusters, type KafkaClusterSettings, parseKafkaClusters } from '../kafka-clusters.ts'
import { Secret } from '../secrets/secret.ts'
import { parseReference, showPemReference, showReference } from '../secrets/secret-reference.ts'
import { formatConfigured, parseConfiguredConsumers, parseConfiguredEntities } from '../webhook-entities.ts'
import { formatByteSize, parseByteSize } from './byte-size.ts'

export type SettingType =
  | 'string'
  | 'integer'
  | 'number'
  | 'boolean'
  | 'duration'
  | 'bytes'
  | 'choice'
  | 'list'
  | 'secret'
  | 'clusters'
  | 'list of maps'

/** One row of the settings table, the source of help, documentation and validation. */
export type Setting<T> = Readonly<{
  type: SettingType
  sentence: string
  default: T
  /** The allowed values, as the end of the sentence "it must be …". */
  allowed: string
  /** The allowed values in short: `0 to 65535`. Empty if the type needs no bounds. */
  bounds: string
  /** The values of a choice. */
  choices: readonly string[]
  /** Returns undefined if the text is not allowed. */
  parse(text: string): T | undefined
  /** Formats the value for people. Never shows a secret. */
  format(value: T): string
  /** A second environment variable, which similar systems also use. */
  sharedVariable: SharedVariable | undefined
}>

/** `correct` returns the nearest allowed value, or undefined if the text is unreadable. */
export type SharedVariable = Readonly<{ name: string; correct(text: string): string | undefined }>

type Given<D> = Readonly<{ sentence: string; default?: D }>
type Absent = undefined

export function string<D extends string | Absent = Absent>(
  given: Given<D> & {
    allowed?: string
    pattern?: RegExp
    format?: (value: string) => string
    variable?: string
  },
): Setting<string | D> {
  const parse = (text: string) => ((given.pattern ?? /\S/).test(text) ? text : undefined)
  return row({
    type: 'string',
    allowed: given.allowed ?? 'text that is not empty',
    parse,
    format: given.format ?? ((value) => value),
    ...shared(given.variable, parse),
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
    ...(variable !== undefined && {
      sharedVariable: { name: variable, correct: (text) => correctInteger(text, min, max) },
    }),
    ...common<number | D>(given),
  })
}

/** A number with a fraction. */
export function number(
  given: Readonly<{ sentence: string; default: number; min: number; max: number; variable?: string }>,
): Setting<number> {
  const { min, max, variable } = given
  const isNumber = (text: string) => /^(\d{1,9}(\.\d{1,9})?|\.\d{1,9})$/.test(text.trim())
  return row({
    type: 'number',
    allowed: `a number from ${min} to ${max}`,
    bounds: `${min} to ${max}`,
    parse: (text) => (isNumber(text) ? within(Number(text), min, max) : undefined),
    format: String,
    ...shared(variable, (text) =>
      isNumber(text) ? String(Math.min(Math.max(Number(text), min), max)) : undefined,
    ),
    ...common<number>(given),
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

/** The value is in whole milliseconds, like the arguments of timers. */
export function duration(
  given: Readonly<{ sentence: string; default: string; min: string; max: string }>,
): Setting<number> {
  const [min, max] = [parseDurationMs(given.min), parseDurationMs(given.max)]
  return row({
    type: 'duration',
    sentence: given.sentence,
    default: parseDurationMs(given.default),
    allowed: `a duration such as 300ms, 1.5s, 5m or 24h, from ${formatMs(min)} to ${formatMs(max)}`,
    bounds: `${formatMs(min)} to ${formatMs(max)}`,
    parse: (text) => {
      try {
        return within(parseDurationMs(text), min, max)
      } catch {
        return undefined // The error message of the reader shows the format of a duration.
      }
    },
    format: formatMs,
  })
}

/** The value is in whole bytes. */
export function bytes(
  given: Readonly<{ sentence: string; default: string; min: string; max: string }>,
): Setting<number> {
  const [min, max] = [requireByteSize(given.min), requireByteSize(given.max)]
  return row({
    type: 'bytes',
    sentence: given.sentence,
    default: requireByteSize(given.default),
    allowed: `a size such as 512, 16KiB or 64MB, from ${formatByteSize(min)} to ${formatByteSize(max)}`,
    bounds: `${formatByteSize(min)} to ${formatByteSize(max)}`,
    parse: (text) => {
      const size = parseByteSize(text)
      return size === undefined ? undefined : within(size, min, max)
    },
    format: formatByteSize,
  })
}

export function choice<const C extends readonly string[], D extends C[number] | Absent = Absent>(
  given: Given<D> & Readonly<{ choices: C }>,
): Setting<C[number] | D> {
  return row<C[number] | D>({
    type: 'choice',
    allowed: `one of ${given.choices.join(', ')}`,
    bounds: given.choices.join(', '),
    choices: given.choices,
    parse: (text) => given.choices.find((option) => option === text),
    format: (value) => value,
    ...common<C[number] | D>(given),
  })
}

/** Texts separated by commas; in redrive.yaml also a list. */
export function list(
  given: Readonly<{
    sentence: string
    default?: readonly string[]
    /** Whether a text can be an entry. `allowed` describes the entries. */
    isEntry?: (text: string) => boolean
    allowed?: string
    variable?: string
  }>,
): Setting<readonly string[]> {
  const parse = (text: string) => {
    if (text.trim() === '' && (given.default ?? []).length === 0) return []
    const entries = text.split(',').map((entry) => entry.trim())
    return entries.includes('') || !entries.every(given.isEntry ?? (() => true)) ? undefined : entries
  }
  return row<readonly string[]>({
    type: 'list',
    sentence: given.sentence,
    default: given.default ?? [],
    allowed: `one or more ${given.allowed ?? 'texts'} separated by commas`,
    parse,
    format: (value) => value.join(','),
    ...shared(given.variable, (text) => (text !== '' && parse(text) !== undefined ? text : undefined)),
  })
}

/** The secret or a reference to it (see secrets.ts). The secret is never shown. */
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

/**
 * Certificates or a key: PEM text, a reference to it, or the path of a file as in libpq. PEM text is never
 * shown.
 */
export function pem(given: Readonly<{ sentence: string }>): Setting<Secret | undefined> {
  return row<Secret | undefined>({
    type: 'secret',
    sentence: given.sentence,
    default: undefined,
    allowed: 'a path, a reference (file:<path>, env:<NAME> or vault:<path>#<key>) or PEM text',
    parse: (text) => (parseReference(text) === undefined ? undefined : new Secret(text)),
    format: (value) => showPemReference(value.reveal()),
  })
}

/** The Kafka clusters, see kafka-clusters.ts. */
export function clusters(given: Readonly<{ sentence: string }>): Setting<readonly KafkaClusterSettings[]> {
  return row<readonly KafkaClusterSettings[]>({
    type: 'clusters',
    sentence: given.sentence,
    default: [],
    allowed: 'a map of clusters',
    parse: parseKafkaClusters,
    format: formatKafkaClusters,
  })
}

/** Producers or channels of the webhook API, see webhook-entities.ts. */
export function webhookEntities(
  given: Readonly<{ sentence: string; name: string }>,
): Setting<readonly ConfiguredEntity<Secret>[]> {
  return row<readonly ConfiguredEntity<Secret>[]>({
    type: 'list of maps',
    sentence: given.sentence,
    default: [],
    allowed: 'a list of maps with id, name and token',
    parse: (text) => parseConfiguredEntities(text, given.name),
    format: formatConfigured,
  })
}

/** Channels of alerts, see alert-channels.ts. */
export function alertChannels(given: Readonly<{ sentence: string }>): Setting<readonly ChannelSetting[]> {
  return row<readonly ChannelSetting[]>({
    type: 'list of maps',
    sentence: given.sentence,
    default: [],
    allowed: 'a list of maps with name, kind and the fields of the kind',
    parse: parseAlertChannels,
    format: formatAlertChannels,
  })
}

/** Rules of alerts, see alert-rules.ts. */
export function alertRules(given: Readonly<{ sentence: string }>): Setting<readonly AlertRule[]> {
  return row<readonly AlertRule[]>({
    type: 'list of maps',
    sentence: given.sentence,
    default: [],
    allowed: 'a list of maps with name, condition and other fields',
    parse: parseAlertRules,
    format: formatAlertRules,
  })
}

export function webhookConsumers(
  given: Readonly<{ sentence: string; name: string }>,
): Setting<readonly ConfiguredConsumer<Secret>[]> {
  return row<readonly ConfiguredConsumer<Secret>[]>({
    type: 'list of maps',
    sentence: given.sentence,
    default: [],
    allowed: 'a list of maps with channel, id, name, token, callback_url and type',
    parse: (text) => parseConfiguredConsumers(text, given.name),
    format: formatConfigured,
  })
}

type Row<T> = Omit<Setting<T>, 'choices' | 'bounds' | 'format' | 'sharedVariable'> & {
  choices?: readonly string[]
  bounds?: string
  sharedVariable?: SharedVariable
  format: (value: NonNullable<T>) => string
}

function row<T>(given: Row<T>): Setting<T> {
  return {
    choices: [],
    bounds: '',
    sharedVariable: undefined,
    ...given,
    format: (value) => (value === undefined || value === null ? '' : given.format(value)),
  }
}

/**
 * The value of a setting without a default is undefined unless it is set, and its type includes undefined.
 */
function common<T>(given: Readonly<{ sentence: string; default?: T }>): { sentence: string; default: T } {
  return { sentence: given.sentence, default: given.default as T }
}

/** A text that is not allowed counts as not set. */
function shared(
  name: string | undefined,
  correct: SharedVariable['correct'],
): { sharedVariable?: SharedVariable } {
  return name === undefined ? {} : { sharedVariable: { name, correct } }
}

function correctInteger(text: string, min: number, max: number): string | undefined {
  if (!/^\s*[+-]?\d+\s*$/.test(text)) return undefined
  return String(Math.min(Math.max(Number(text), min), max))
}

function within(value: number, min: number, max: number): number | undefined {
  return value >= min && value <= max ? value : undefined
}

function parseDurationMs(text: string): number {
  return Math.ceil(parseDuration(text) / 1_000)
}

/** Formats without trailing zero parts: `10m` instead of `10m0s`. */
function formatMs(ms: number): string {
  return formatDuration(ms * 1_000)
    .replace(/m0s$/, 'm')
    .replace(/h0m$/, 'h')
}

function requireByteSize(text: string): number {
  const size = parseByteSize(text)
  if (size === undefined) throw new Error(`not a size: ${text}`)
  return size
}

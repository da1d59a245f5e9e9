/**
 * Channels: where notifications go. A channel has a kind, and the fields of its kind. The table `kinds` is
 * the only place that lists them: reading, validation, masking and storage follow it.
 *
 * Fields have the same names in the API, in redrive.yaml and in the store. Secret fields are stored apart
 * from the others, and are never shown.
 */
import {
  addressesField,
  addressField,
  certificatesField,
  choiceField,
  type Field,
  type FieldValue,
  optional,
  portField,
  signingSecretField,
  textField,
  urlField,
} from './channel-fields.ts'

const secretUrl = urlField({ isSecret: true })
const key = textField('a key of up to 500 visible characters', { pattern: /^[\x21-\x7e]+$/, isSecret: true })
const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}$/

const kinds = {
  webhook: { url: urlField(), secret: signingSecretField },
  slack: { url: secretUrl },
  teams: { url: secretUrl },
  discord: { url: secretUrl },
  pagerduty: { routing_key: key, url: urlField({ fallback: 'https://events.pagerduty.com/v2/enqueue' }) },
  opsgenie: {
    api_key: key,
    api_key_header: textField('the name of a header', { pattern: headerName, fallback: 'Authorization' }),
    url: urlField({ fallback: 'https://api.opsgenie.com/v2/alerts' }),
  },
  telegram: {
    bot_token: textField('the token of a bot, such as 123456:ABC', {
      pattern: /^[A-Za-z0-9_-]+:[A-Za-z0-9_-]+$/,
      isSecret: true,
    }),
    chat_id: textField('the id of a chat, or @ and the name of a channel', {
      pattern: /^(?:-?\d{1,20}|@\w{1,64})$/,
    }),
    url: urlField({ fallback: 'https://api.telegram.org' }),
  },
  email: {
    host: textField('the name or address of an SMTP server', { pattern: /^[A-Za-z0-9_.:-]{1,255}$/ }),
    port: portField(587),
    tls: choiceField(['starttls', 'tls', 'none']),
    tls_ca: optional(certificatesField),
    user: optional(textField('a text of up to 500 characters')),
    password: optional(textField('a text of up to 2000 characters', { isSecret: true, lengthMax: 2_000 })),
    from: addressField,
    to: addressesField,
  },
} as const

export type ChannelKind = keyof typeof kinds
export const channelKinds = Object.keys(kinds) as readonly ChannelKind[]

type Settings<K extends ChannelKind> = {
  readonly [F in keyof (typeof kinds)[K]]: (typeof kinds)[K][F] extends Field<infer T> ? T : never
}
export type ChannelTarget<K extends ChannelKind = ChannelKind> = {
  [Each in K]: Readonly<{ kind: Each }> & Settings<Each>
}[K]

/** A channel with everything that is needed to send to it. */
export type ChannelConfig = Readonly<{ name: string; namespace: string; target: ChannelTarget }>

export type FieldProblem = Readonly<{ field: string; message: string }>
export type FieldValues = Readonly<Record<string, unknown>>

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

export function findChannelNameProblem(name: string): string | undefined {
  if (namePattern.test(name)) return undefined
  return 'the name of a channel has 1 to 100 letters, digits, ".", "_" or "-", and starts with a letter or a digit'
}

export function isChannelKind(text: unknown): text is ChannelKind {
  return typeof text === 'string' && Object.hasOwn(kinds, text)
}

/** All fields of a kind, and whether they are secret. */
export function listFields(kind: ChannelKind): readonly Readonly<{ name: string; isSecret: boolean }>[] {
  return fieldsOf(kind).map(([name, { isSecret }]) => ({ name, isSecret }))
}

/**
 * Reads the fields of a channel from a request, a file or the store. `isPending`: the value of this field is
 * a reference, which is resolved and checked when the channel is used.
 */
export function decodeTarget(
  kind: ChannelKind,
  values: FieldValues,
  isPending: (field: string) => boolean = () => false,
): Readonly<{ target: ChannelTarget } | { problems: readonly FieldProblem[] }> {
  const problems: FieldProblem[] = findUnknownFields(kind, values)
  const target: Record<string, unknown> = { kind }
  for (const [name, field] of fieldsOf(kind)) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    const read = isPending(name) ? { value } : readField(kind, field, value)
    if ('problem' in read) problems.push({ field: name, message: read.problem })
    else target[name] = read.value
  }
  if (problems.length > 0) return { problems }
  // The loop has read each field of the kind with its reader.
  const decoded = target as ChannelTarget
  const conflict = findConflict(decoded)
  return conflict === undefined ? { target: decoded } : { problems: [conflict] }
}

function findUnknownFields(kind: ChannelKind, values: FieldValues): FieldProblem[] {
  const known = fieldsOf(kind).map(([name]) => name)
  return Object.keys(values)
    .filter((field) => !known.includes(field) && values[field] !== undefined)
    .map((field) => ({
      field,
      message: `is not a field of a ${kind} channel, which has ${known.join(', ')}`,
    }))
}

function readField(kind: ChannelKind, field: Field<FieldValue | null>, value: unknown) {
  if (value !== undefined) return field.read(value)
  if (field.fallback !== undefined) return { value: field.fallback }
  return { problem: `is missing: a ${kind} channel needs it` }
}

function findConflict(target: ChannelTarget): FieldProblem | undefined {
  if (target.kind !== 'email') return undefined
  if ((target.user === null) !== (target.password === null)) {
    return {
      field: target.user === null ? 'user' : 'password',
      message: 'is missing: user and password go together',
    }
  }
  if (target.tls === 'none' && target.password !== null) {
    return { field: 'tls', message: 'must not be none: the password would be sent unencrypted' }
  }
  return undefined
}

/** The fields that the API shows, and the secret ones. Fields that are null are left out. */
export function splitTarget(target: ChannelTarget): Readonly<{
  shown: Readonly<Record<string, FieldValue>>
  secrets: Readonly<Record<string, string>>
}> {
  const values = target as unknown as Readonly<Record<string, FieldValue | null>>
  const shown: Record<string, FieldValue> = {}
  const secrets: Record<string, string> = {}
  for (const [name, { isSecret }] of fieldsOf(target.kind)) {
    const value = values[name]
    if (value === null || value === undefined) continue
    if (isSecret) secrets[name] = String(value)
    else shown[name] = value
  }
  return { shown, secrets }
}

function fieldsOf(kind: ChannelKind): readonly (readonly [string, Field<FieldValue | null>])[] {
  return Object.entries(kinds[kind])
}

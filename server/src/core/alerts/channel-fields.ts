/** The kinds of fields that a channel has, each with its bounds. */
import { decodeBase64 } from '../webhook/base64.ts'
import { findSigningSecretProblem } from '../webhook/signature.ts'

export type FieldValue = string | number | readonly string[]

/**
 * `read` returns a message that continues the name of the field, such as `must be a URL`, if the value is not
 * allowed. `fallback`: the value of a field that is left out; undefined: the field is required.
 */
export type Field<T extends FieldValue | null> = Readonly<{
  isSecret: boolean
  fallback?: T
  read(value: unknown): Readonly<{ value: T }> | Readonly<{ problem: string }>
}>

export const channelBounds = {
  urlMax: 2_000,
  textMax: 500,
  secretMax: 2_000,
  pemMax: 65_536,
  recipientsMax: 50,
} as const

type Limits = Readonly<{ lengthMax: number; pattern?: RegExp; allowed: string }>

/** A whole number is read as text: in YAML, the id of a chat needs no quotes. */
function readText(
  { lengthMax, pattern, allowed }: Limits,
  given: unknown,
): ReturnType<Field<string>['read']> {
  const value = Number.isSafeInteger(given) ? String(given) : given
  const isText =
    typeof value === 'string' && value !== '' && value.length <= lengthMax && value.isWellFormed()
  if (!isText || pattern?.test(value) === false) return { problem: `must be ${allowed}` }
  return { value }
}

const line = /^[^\p{Cc}\p{Zl}\p{Zp}]+$/u

export function textField(
  allowed: string,
  how: Readonly<{ pattern?: RegExp; fallback?: string; isSecret?: boolean; lengthMax?: number }> = {},
): Field<string> {
  const { pattern = line, fallback, isSecret = false, lengthMax = channelBounds.textMax } = how
  return {
    isSecret,
    ...(fallback !== undefined && { fallback }),
    read: (value) => readText({ lengthMax, pattern, allowed }, value),
  }
}

/** `isSecret`: whoever knows the URL can send messages, so it is not shown. */
export function urlField(how: Readonly<{ fallback?: string; isSecret?: boolean }> = {}): Field<string> {
  const allowed = `a URL with http or https, without user and password, of up to ${channelBounds.urlMax} characters`
  return {
    isSecret: how.isSecret ?? false,
    ...(how.fallback !== undefined && { fallback: how.fallback }),
    read: (value) => {
      const text = readText({ lengthMax: channelBounds.urlMax, pattern: /^[\x21-\x7e]+$/, allowed }, value)
      if ('problem' in text) return text
      const url = URL.parse(text.value)
      const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
      return isHttp && url.username === '' && url.password === '' ? text : { problem: `must be ${allowed}` }
    },
  }
}

export const signingSecretField: Field<string> = {
  isSecret: true,
  read: (value) => {
    if (typeof value !== 'string') return { problem: 'must be a signing secret, whsec_ and base64' }
    const problem = findSigningSecretProblem(value)
    return problem === undefined ? { value } : { problem: `is not valid: ${problem}` }
  },
}

export function optional<T extends FieldValue>(field: Field<T>): Field<T | null> {
  return {
    ...field,
    fallback: null,
    read: (value) => (value === null ? { value: null } : field.read(value)),
  }
}

export function choiceField<const C extends string>(choices: readonly [C, ...C[]]): Field<C> {
  return {
    isSecret: false,
    fallback: choices[0],
    read: (value) => {
      const choice = choices.find((each) => each === value)
      return choice === undefined ? { problem: `must be ${choices.join(', ')}` } : { value: choice }
    },
  }
}

export function portField(fallback: number): Field<number> {
  return {
    isSecret: false,
    fallback,
    read: (value) =>
      typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535
        ? { value }
        : { problem: 'must be a port from 1 to 65535' },
  }
}

/** No white space, so that an address cannot add a header or a command to a mail. */
const address = /^[^\s<>()[\]\\,;:"@\p{Cc}]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/u
const addressAllowed = 'an e-mail address such as alerts@example.com'

export const addressField: Field<string> = textField(addressAllowed, { pattern: address, lengthMax: 254 })

export const addressesField: Field<readonly string[]> = {
  isSecret: false,
  read: (value) => {
    const { recipientsMax } = channelBounds
    const isList = Array.isArray(value) && value.length > 0 && value.length <= recipientsMax
    const problem = `must be a list of 1 to ${recipientsMax} e-mail addresses`
    if (!isList) return { problem }
    const read = value.map((each) => addressField.read(each))
    if (read.some((each) => 'problem' in each)) return { problem }
    return { value: read.flatMap((each) => ('value' in each ? each.value : [])) }
  },
}

const pem = /^\s*(?:-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*)+$/

export const certificatesField: Field<string> = {
  isSecret: false,
  read: (value) => {
    const allowed = 'certificates in PEM'
    const text = readText({ lengthMax: channelBounds.pemMax, pattern: pem, allowed }, value)
    if ('problem' in text) return text
    const [, body = ''] = /-----BEGIN CERTIFICATE-----([^-]+)-----END/.exec(text.value) ?? []
    return decodeBase64(body.replaceAll(/\s/g, '')) === undefined ? { problem: `must be ${allowed}` } : text
  },
}

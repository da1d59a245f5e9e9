/** Checks of names, in the contract's order and with its messages. */
import { createBadRequest } from '../protocol/fault.ts'

/** White space as the contract defines it: as in Unicode, with NEL and without the byte order mark. */
const whitespace = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/
const onlyWhitespace = new RegExp(`^${whitespace.source}*$`)

export function isBlank(text: string): boolean {
  return onlyWhitespace.test(text)
}

/** The first check of every call that names a queue. */
export function checkQueueName(name: string): void {
  if (isBlank(name)) throw createBadRequest('queue name is invalid; queue name cannot be empty')
  if (name.includes('~'))
    throw createBadRequest(`queue name is invalid; '${name}' cannot contain '~' character`)
}

/** The stricter check of calls that create, change or delete a queue. */
export function checkNewQueueName(name: string): void {
  checkLength('queue name', name, 512)
  if (isBlank(name)) throw createBadRequest('queue name is invalid; queue name cannot be empty')
  checkCharacters('queue name', name)
}

export function checkDeadQueueName(name: string): void {
  checkLength('dead queue', name, 500)
  checkCharacters('dead queue', name)
}

/** An empty name selects the system namespace. */
export function checkNamespaceName(name: string): void {
  if (name === '') return
  checkLength('namespace name', name, 256)
  if (isBlank(name)) throw createBadRequest('namespace name is invalid; cannot be empty')
  checkCharacters('namespace name', name)
  if (name.includes(':'))
    throw createBadRequest(`namespace name is invalid; '${name}' cannot contain ':' character`)
}

/** Counts bytes, although the contract's message mentions characters. */
export function checkLength(what: string, text: string, bytesMax: number): void {
  if (Buffer.byteLength(text) > bytesMax) {
    throw createBadRequest(`${what} is invalid; cannot be greater than '${bytesMax}' characters`)
  }
}

/** PostgreSQL cannot store a NUL character in a text. Binary data belongs in the payload. */
export function checkNoNul(what: string, text: string): void {
  if (text.includes('\0')) throw createBadRequest(`${what} is invalid; cannot contain a NUL character`)
}

function checkCharacters(what: string, name: string): void {
  if (whitespace.test(name)) throw createBadRequest(`${what} is invalid; '${name}' cannot contain whitespace`)
  if (name.includes('~')) throw createBadRequest(`${what} is invalid; '${name}' cannot contain '~' character`)
  checkNoNul(what, name)
}

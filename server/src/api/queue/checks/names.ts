/** The forms of names, in the contract's order and words. */
import { badRequest } from '../protocol/fault.ts'

/** White space as clients of this protocol know it: Unicode's, with NEL and without the byte order mark. */
const whitespace = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/
const onlyWhitespace = new RegExp(`^${whitespace.source}*$`)

export function isBlank(text: string): boolean {
  return onlyWhitespace.test(text)
}

/** The first step of every call that names a queue. */
export function checkQueueName(name: string): void {
  if (isBlank(name)) throw badRequest('queue name is invalid; queue name cannot be empty')
  if (name.includes('~')) throw badRequest(`queue name is invalid; '${name}' cannot contain '~' character`)
}

/** The stricter form of a name that is to be given, changed or deleted. */
export function checkNewQueueName(name: string): void {
  checkLength('queue name', name, 512)
  if (isBlank(name)) throw badRequest('queue name is invalid; queue name cannot be empty')
  checkCharacters('queue name', name)
}

export function checkDeadQueueName(name: string): void {
  checkLength('dead queue', name, 500)
  checkCharacters('dead queue', name)
}

/** Empty stands for the system's namespace. */
export function checkNamespaceName(name: string): void {
  if (name === '') return
  checkLength('namespace name', name, 256)
  if (isBlank(name)) throw badRequest('namespace name is invalid; cannot be empty')
  checkCharacters('namespace name', name)
  if (name.includes(':')) throw badRequest(`namespace name is invalid; '${name}' cannot contain ':' character`)
}

/** In bytes, though the message says characters. */
export function checkLength(what: string, text: string, bytesMax: number): void {
  if (Buffer.byteLength(text) > bytesMax) {
    throw badRequest(`${what} is invalid; cannot be greater than '${bytesMax}' characters`)
  }
}

/** No store can keep a NUL in a text; bytes belong in the payload. */
export function checkNoNul(what: string, text: string): void {
  if (text.includes('\0')) throw badRequest(`${what} is invalid; cannot contain a NUL character`)
}

function checkCharacters(what: string, name: string): void {
  if (whitespace.test(name)) throw badRequest(`${what} is invalid; '${name}' cannot contain whitespace`)
  if (name.includes('~')) throw badRequest(`${what} is invalid; '${name}' cannot contain '~' character`)
  checkNoNul(what, name)
}

/** Why an attempt failed. If the item dies, its dead letter shows this failure. */
export type ItemFailure = Readonly<{
  errorClass?: string
  message?: string
  stack?: string
  /** Your own short code, for finding and counting dead letters. */
  errorCode?: string
  /** Your own name of the cause, up to 200 characters: dead letters with the same name are one group. */
  fingerprint?: string
}>

/**
 * The Queue API has no field for the failure, and its strict clients reject unknown fields: hence a header.
 */
export const failureHeader = 'X-Redrive-Error'

const lengthsMax = { errorClass: 200, errorCode: 100, fingerprint: 200, message: 1_000, stack: 4_000 }
/** Servers and proxies limit the total size of all headers, often to 8 or 16 KiB. */
const headerBytesMax = 6_000

/** Describes a thrown value of any type. An error can have its own `fingerprint`. */
export function toItemFailure(thrown: unknown): ItemFailure {
  if (thrown instanceof Error) {
    const { name, message, stack } = thrown
    const { fingerprint } = thrown as { fingerprint?: unknown }
    return {
      errorClass: name || thrown.constructor.name,
      message,
      ...(stack !== undefined && { stack }),
      ...(typeof fingerprint === 'string' && fingerprint !== '' && { fingerprint }),
    }
  }
  return { errorClass: typeof thrown, message: describe(thrown) }
}

/**
 * Encodes the failure as ASCII JSON, which every HTTP stack accepts, and truncates it to the header limit.
 */
export function toFailureHeader(failure: ItemFailure): string {
  // PostgreSQL cannot store NUL in text.
  const cut = (key: keyof typeof lengthsMax) =>
    failure[key]?.slice(0, lengthsMax[key]).replaceAll('\0', '') || undefined
  const fields = {
    error_class: cut('errorClass'),
    message: cut('message'),
    stack: cut('stack'),
    error_code: cut('errorCode'),
    fingerprint: cut('fingerprint'),
  }
  for (;;) {
    const header = toAscii(JSON.stringify(fields))
    if (header.length <= headerBytesMax) return header
    // Only text that is mostly not ASCII gets here. Cut the stack first: the message is more useful.
    if (fields.stack) fields.stack = fields.stack.slice(0, fields.stack.length / 2)
    else fields.message = fields.message?.slice(0, fields.message.length / 2)
  }
}

function toAscii(json: string): string {
  return json.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function describe(thrown: unknown): string {
  try {
    return (typeof thrown === 'object' ? JSON.stringify(thrown) : String(thrown)) ?? ''
  } catch {
    // Circular objects, and objects whose toString throws, have no text form. The type is still reported.
    return ''
  }
}

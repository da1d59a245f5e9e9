/** Why an item is given back. When it dies of it, this is the failure that its dead letter shows. */
export type ItemFailure = Readonly<{
  errorClass?: string
  message?: string
  stack?: string
  /** A short code of your own, to find and count letters by. */
  reason?: string
}>

/** The Queue API has no field for it, and strict clients of it must never see one. */
export const failureHeader = 'X-Redrive-Error'

const lengthsMax = { errorClass: 200, reason: 100, message: 1_000, stack: 4_000 }
/** Servers and proxies bound all headers together, often at 8 or 16 KiB. */
const headerBytesMax = 6_000

/** What was thrown, whatever it is. */
export function failureOf(thrown: unknown): ItemFailure {
  if (thrown instanceof Error) {
    const { name, message, stack } = thrown
    return { errorClass: name || thrown.constructor.name, message, ...(stack !== undefined && { stack }) }
  }
  return { errorClass: typeof thrown, message: describe(thrown) }
}

/** As JSON in ASCII, which every HTTP stack lets pass; no longer than headers may be. */
export function toFailureHeader(failure: ItemFailure): string {
  // NUL is the one character that not every store can keep in a text.
  const cut = (key: keyof typeof lengthsMax) =>
    failure[key]?.slice(0, lengthsMax[key]).replaceAll('\0', '') || undefined
  const fields = {
    error_class: cut('errorClass'),
    error_message: cut('message'),
    stack: cut('stack'),
    reason: cut('reason'),
  }
  for (;;) {
    const header = toAscii(JSON.stringify(fields))
    if (header.length <= headerBytesMax) return header
    // Only text that is mostly not ASCII gets here. The stack goes first: the message says more.
    if (fields.stack) fields.stack = fields.stack.slice(0, fields.stack.length / 2)
    else fields.error_message = fields.error_message?.slice(0, fields.error_message.length / 2)
  }
}

function toAscii(json: string): string {
  return json.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function describe(thrown: unknown): string {
  try {
    return (typeof thrown === 'object' ? JSON.stringify(thrown) : String(thrown)) ?? ''
  } catch {
    // Objects can be circular, or refuse to be text. The type alone must do.
    return ''
  }
}

/** Errors that tell the worker what to do with a record. */

/** No retry can help: the record goes to the dead-letter topic at once. */
export class NonRetryableError extends Error {
  constructor(message: string, options?: Readonly<{ cause?: unknown }>) {
    super(message, options)
    this.name = 'NonRetryableError'
  }
}

/** The bytes of a record are not what the handler expects. Never retried. */
export class DeserializationError extends NonRetryableError {
  constructor(message: string, options?: Readonly<{ cause?: unknown }>) {
    super(message, options)
    this.name = 'DeserializationError'
  }
}

/** The content of a record is not valid. Never retried. */
export class ValidationError extends NonRetryableError {
  constructor(message: string, options?: Readonly<{ cause?: unknown }>) {
    super(message, options)
    this.name = 'ValidationError'
  }
}

/** The worker cannot be created with these options. */
export class KafkaWorkerOptionsError extends TypeError {
  constructor(message: string) {
    super(message)
    this.name = 'KafkaWorkerOptionsError'
  }
}

/** Names of an error class, error classes, or a function that decides. */
export type NonRetryable = string | (abstract new (...args: never[]) => Error)

/** Errors of deserialization and validation, by name: of this package, JavaScript, Zod, Ajv and Yup. */
const namesOfNonRetryable: ReadonlySet<string> = new Set([
  'NonRetryableError',
  'DeserializationError',
  'ValidationError',
  'SyntaxError',
  'SchemaValidationError',
  'ZodError',
  '$ZodError',
  'TypeBoxError',
  'JsonParseError',
])

const causesMax = 10

/** Also true if the cause of the error cannot be retried: frameworks wrap errors in their own. */
export function isNonRetryable(
  thrown: unknown,
  configured: readonly NonRetryable[] | ((error: unknown) => boolean),
): boolean {
  if (typeof configured === 'function') return thrown instanceof NonRetryableError || configured(thrown)
  let error = thrown
  for (let depth = 0; error instanceof Error && depth < causesMax; depth++) {
    const current = error
    if (current instanceof NonRetryableError || namesOfNonRetryable.has(current.name)) return true
    const isNamed = configured.some((each) =>
      typeof each === 'string' ? current.name === each : current instanceof each,
    )
    if (isNamed) return true
    error = current.cause
  }
  return false
}

/** Class, message and stack of a thrown value of any type. */
export function describeThrown(thrown: unknown): Readonly<{ name: string; message: string; stack: string }> {
  if (thrown instanceof Error) {
    const { name, message, stack = '' } = thrown
    return { name: name || thrown.constructor.name, message, stack }
  }
  return { name: typeof thrown, message: toText(thrown), stack: '' }
}

function toText(value: unknown): string {
  try {
    return typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))
  } catch {
    return String(value)
  }
}

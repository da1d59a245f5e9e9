import { DeserializationError } from '../errors.ts'

export type RawHeader = readonly [name: Uint8Array | null, value: Uint8Array | null]

/** The headers of a redriven record. docs/kafka.md describes them. */
export const redriveHeaders = {
  letterId: 'redrive-letter-id',
  attempt: 'redrive-attempt',
  targetGroup: 'redrive-target-group',
} as const

export function isRedriveHeader(name: string): boolean {
  return (
    name === redriveHeaders.letterId || name === redriveHeaders.attempt || name === redriveHeaders.targetGroup
  )
}

export type RecordFields = Readonly<{
  topic: string
  partition: number
  offset: number
  /** When the record was written, in milliseconds since 1970. */
  timestampMs: number
  key: Buffer | null
  /** Null: a tombstone. */
  value: Buffer | null
  rawHeaders: readonly RawHeader[]
}>

/** A record as it is in Kafka, byte for byte. */
export class KafkaRecord implements RecordFields {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly timestampMs: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly rawHeaders: readonly RawHeader[]

  constructor(fields: RecordFields) {
    this.topic = fields.topic
    this.partition = fields.partition
    this.offset = fields.offset
    this.timestampMs = fields.timestampMs
    this.key = fields.key
    this.value = fields.value
    this.rawHeaders = fields.rawHeaders
  }

  /** The headers in order. Names are decoded as UTF-8; values stay bytes. */
  get headers(): readonly (readonly [name: string, value: Buffer | null])[] {
    return this.rawHeaders.map(([name, value]) => [
      name === null ? '' : toBuffer(name).toString('utf8'),
      value === null ? null : toBuffer(value),
    ])
  }

  /** The last value of a header as text; undefined: there is no such header, or it has no value. */
  header(name: string): string | undefined {
    for (let at = this.rawHeaders.length - 1; at >= 0; at--) {
      const [held, value] = this.rawHeaders[at] ?? [null, null]
      if (held !== null && value !== null && toBuffer(held).toString('utf8') === name)
        return toBuffer(value).toString('utf8')
    }
    return undefined
  }

  /** The dead letter that this record is a redrive of; undefined: it is no redrive. */
  get letterId(): string | undefined {
    return this.header(redriveHeaders.letterId)
  }

  /** The value as UTF-8 text; empty for a tombstone. */
  text(): string {
    return this.value?.toString('utf8') ?? ''
  }

  /**
   * Parses the value as JSON. Throws a DeserializationError if it is not JSON: such a record is never
   * retried.
   */
  json<T = unknown>(): T {
    try {
      return JSON.parse(this.text()) as T
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new DeserializationError(`the value is not JSON: ${reason}`, { cause })
    }
  }
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

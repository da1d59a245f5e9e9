/**
 * Rows in the binary format of COPY, in protocol messages. COPY takes the database half the time of inserting
 * rows from unnested arrays.
 */
import { Buffer } from 'node:buffer'
import { uuidBytes, writeKsuidUuid } from '../../../core/ids/ksuid.ts'
import { type Column, type ColumnName, columns, type StoredItem } from './rows.ts'

export function copyStatement(table: string, names: readonly ColumnName[]): string {
  return `copy redrive.${table} (${names.join(', ')}, is_sourced) from stdin (format binary)`
}

/** A column to copy. `isSmall`: it is an int2 in the table. */
type CopiedColumn = Column & Readonly<{ isSmall: boolean }>
type ColumnValue = ReturnType<Column['toValue']>

/**
 * All messages that follow the statement, including the end of the rows. `isSourced`: the value of that
 * column, which is the same for all rows of a table.
 */
export function encodeCopyMessages(
  names: readonly ColumnName[],
  rows: readonly StoredItem[],
  isSourced: boolean,
): Buffer[] {
  const writer = new CopyWriter()
  const copied = names.map((name): CopiedColumn => ({ ...columns[name], isSmall: name === 'state' }))
  for (const row of rows) {
    writer.startRow(copied.length + 1)
    for (const column of copied) writeValue(writer, column, column.toValue(row))
    writer.writeBoolean(isSourced)
  }
  return writer.end()
}

function writeValue(writer: CopyWriter, column: CopiedColumn, value: ColumnValue): void {
  if (value === null) writer.writeNull()
  else if (typeof value === 'number') writeNumber(writer, column, value)
  else if (typeof value !== 'string') writer.writeBytes(value)
  else if (column.type === 'uuid') writer.writeUuid(value)
  else writer.writeText(value)
}

function writeNumber(writer: CopyWriter, column: CopiedColumn, value: number): void {
  if (column.type === 'int8') writer.writeInt8(value)
  // The only column that is narrower in the table than in a statement.
  else if (column.isSmall) writer.writeInt2(value)
  else writer.writeInt4(value)
}

const messageBytes = 64 * 1_024
/**
 * Memory of sent messages, for the next messages. New memory for each message would cause a full garbage
 * collection again and again.
 */
const sentMessages: ArrayBufferLike[] = []
const sentMessagesMax = 64

/** Takes back the memory of messages. Call it after the database has read all of them. */
export function reuseMessages(messages: readonly Buffer[]): void {
  for (const { buffer } of messages) {
    if (buffer.byteLength === messageBytes && sentMessages.length < sentMessagesMax) sentMessages.push(buffer)
  }
}

function allocateMessage(): Buffer {
  const sent = sentMessages.pop()
  return sent === undefined ? Buffer.allocUnsafeSlow(messageBytes) : Buffer.from(sent)
}

/** The type and the length of a message. */
const headBytes = 5
const [copyData, copyDone] = [0x64, 0x63]
/** Not from the pool that small buffers share: `reuseMessages` must not take the pool for a sent message. */
const doneMessage = Buffer.allocUnsafeSlow(headBytes)
doneMessage.set([copyDone, 0, 0, 0, headBytes - 1])
const signature = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')
/**
 * Texts from this length on are measured before they are written: three bytes per character is far too much.
 */
const measuredTextMin = 4_096

class CopyWriter {
  readonly #messages: Buffer[] = []
  #message = allocateMessage()
  #at = headBytes

  constructor() {
    this.#message.set(signature, this.#at)
    this.#at += signature.length
    // No flags, and no header extension.
    this.#put4(0)
    this.#put4(0)
  }

  startRow(fields: number): void {
    this.#reserve(2)
    this.#put2(fields)
  }

  writeNull(): void {
    this.#reserve(4)
    this.#put4(-1)
  }

  writeBoolean(value: boolean): void {
    this.#reserve(5)
    this.#put4(1)
    this.#message[this.#at++] = value ? 1 : 0
  }

  writeInt2(value: number): void {
    this.#reserve(6)
    this.#put4(2)
    this.#put2(value)
  }

  writeInt4(value: number): void {
    this.#reserve(8)
    this.#put4(4)
    this.#put4(value)
  }

  writeInt8(value: number): void {
    this.#reserve(12)
    const high = Math.floor(value / 2 ** 32)
    this.#put4(8)
    this.#put4(high)
    this.#put4(value - high * 2 ** 32)
  }

  writeText(value: string): void {
    this.#reserve(4 + (value.length < measuredTextMin ? value.length * 3 : Buffer.byteLength(value)))
    const length = this.#message.write(value, this.#at + 4)
    this.#put4(length)
    this.#at += length
  }

  writeUuid(ksuid: string): void {
    this.#reserve(4 + uuidBytes)
    this.#put4(uuidBytes)
    writeKsuidUuid(ksuid, this.#message, this.#at)
    this.#at += uuidBytes
  }

  writeBytes(value: Uint8Array): void {
    this.#reserve(4 + value.byteLength)
    this.#put4(value.byteLength)
    this.#message.set(value, this.#at)
    this.#at += value.byteLength
  }

  end(): Buffer[] {
    this.#reserve(2)
    this.#put2(-1)
    this.#endMessage()
    this.#messages.push(doneMessage)
    return this.#messages
  }

  /**
   * Starts a new message if `size` bytes do not fit into this one. A message can end between any two values.
   */
  #reserve(size: number): void {
    if (this.#at + size <= this.#message.length) return
    this.#endMessage()
    this.#message =
      headBytes + size > messageBytes ? Buffer.allocUnsafeSlow(headBytes + size) : allocateMessage()
    this.#at = headBytes
  }

  #endMessage(): void {
    const end = this.#at
    this.#message[0] = copyData
    this.#at = 1
    this.#put4(end - 1)
    this.#messages.push(this.#message.subarray(0, end))
  }

  #put2(value: number): void {
    const message = this.#message
    message[this.#at] = value >> 8
    message[this.#at + 1] = value
    this.#at += 2
  }

  #put4(value: number): void {
    const message = this.#message
    message[this.#at] = value >> 24
    message[this.#at + 1] = value >> 16
    message[this.#at + 2] = value >> 8
    message[this.#at + 3] = value
    this.#at += 4
  }
}

/**
 * Rows as the binary format of COPY has them, in the messages of the protocol that carry them. Against arrays that
 * are unnested and inserted, the database spends half on taking a row in.
 */
import { Buffer } from 'node:buffer'
import { uuidBytes, writeKsuidUuid } from '../../../core/ksuid.ts'
import { type Column, type ColumnName, columns, type StoredItem } from './rows.ts'

export function copyStatement(table: string, names: readonly ColumnName[]): string {
  return `copy redrive.${table} (${names.join(', ')}, is_sourced) from stdin (format binary)`
}

/** All that follows the statement, up to the end of the rows. `isSourced`: of the table that they go into. */
export function copyMessages(
  names: readonly ColumnName[],
  rows: readonly StoredItem[],
  isSourced: boolean,
): Buffer[] {
  const writer = new CopyWriter()
  const written = names.map((name) => ({ ...(columns[name] as Column), isSmall: name === 'state' }))
  for (const row of rows) {
    writer.startRow(written.length + 1)
    for (const column of written) {
      const value = column.of(row)
      if (value === null) writer.none()
      else if (typeof value === 'number') {
        if (column.type === 'int8') writer.int8(value)
        // The one column that is narrower in the table than in a statement.
        else if (column.isSmall) writer.int2(value)
        else writer.int4(value)
      } else if (typeof value !== 'string') writer.bytes(value)
      else if (column.type === 'uuid') writer.uuid(value)
      else writer.text(value)
    }
    writer.bool(isSourced)
  }
  return writer.end()
}

const messageBytes = 64 * 1_024
/**
 * Memory of messages that were sent, for the next ones: taken anew each time, it would make the collector of garbage
 * look through everything again and again.
 */
const sentMessages: ArrayBufferLike[] = []
const sentMessagesMax = 64

/** The database has read all of them. */
export function reuseMessages(messages: readonly Buffer[]): void {
  for (const { buffer } of messages) {
    if (buffer.byteLength === messageBytes && sentMessages.length < sentMessagesMax) sentMessages.push(buffer)
  }
}

function newMessage(): Buffer {
  const sent = sentMessages.pop()
  return sent === undefined ? Buffer.allocUnsafeSlow(messageBytes) : Buffer.from(sent)
}
const headBytes = 5
const [copyData, copyDone] = [0x64, 0x63]
/** In memory of its own: what small buffers share must not be taken for a message that was sent. */
const doneMessage = Buffer.allocUnsafeSlow(headBytes)
doneMessage.set([copyDone, 0, 0, 0, headBytes - 1])
const signature = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')
/** Longer ones are measured before they are written: what they may take at most is much more than they do. */
const textMeasuredMin = 4_096

class CopyWriter {
  readonly #messages: Buffer[] = []
  #message = newMessage()
  #at = headBytes

  constructor() {
    this.#message.set(signature, this.#at)
    this.#at += signature.length
    // Neither flags nor more of a header.
    this.#put4(0)
    this.#put4(0)
  }

  startRow(fields: number): void {
    this.#makeRoom(2)
    this.#put2(fields)
  }

  none(): void {
    this.#makeRoom(4)
    this.#put4(-1)
  }

  bool(value: boolean): void {
    this.#makeRoom(5)
    this.#put4(1)
    this.#message[this.#at++] = value ? 1 : 0
  }

  int2(value: number): void {
    this.#makeRoom(6)
    this.#put4(2)
    this.#put2(value)
  }

  int4(value: number): void {
    this.#makeRoom(8)
    this.#put4(4)
    this.#put4(value)
  }

  int8(value: number): void {
    this.#makeRoom(12)
    const high = Math.floor(value / 2 ** 32)
    this.#put4(8)
    this.#put4(high)
    this.#put4(value - high * 2 ** 32)
  }

  text(value: string): void {
    this.#makeRoom(4 + (value.length < textMeasuredMin ? value.length * 3 : Buffer.byteLength(value)))
    const length = this.#message.write(value, this.#at + 4)
    this.#put4(length)
    this.#at += length
  }

  /** Given as a KSUID. */
  uuid(ksuid: string): void {
    this.#makeRoom(4 + uuidBytes)
    this.#put4(uuidBytes)
    writeKsuidUuid(ksuid, this.#message, this.#at)
    this.#at += uuidBytes
  }

  bytes(value: Uint8Array): void {
    this.#makeRoom(4 + value.byteLength)
    this.#put4(value.byteLength)
    this.#message.set(value, this.#at)
    this.#at += value.byteLength
  }

  end(): Buffer[] {
    this.#makeRoom(2)
    this.#put2(-1)
    this.#finish()
    this.#messages.push(doneMessage)
    return this.#messages
  }

  /** A message may end anywhere between two values. */
  #makeRoom(size: number): void {
    if (this.#at + size <= this.#message.length) return
    this.#finish()
    this.#message = headBytes + size > messageBytes ? Buffer.allocUnsafeSlow(headBytes + size) : newMessage()
    this.#at = headBytes
  }

  #finish(): void {
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

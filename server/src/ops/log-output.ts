/**
 * Where log lines go: a descriptor, as soon as they are said, so that the last ones before an end are not lost.
 *
 * Whoever reads them may read slowly, not at all, or be gone (`redrive serve | logger`, and logger dies). That costs
 * lines, never the server: what cannot be written waits, up to a bound, and is left when it cannot be written at all.
 * An end waits for it no longer than `flushMsMax`.
 */
import { writeSync } from 'node:fs'

type Write = (fd: number, bytes: Uint8Array) => number

const waitingBytesMax = 4 * 1_024 * 1_024
/** Nobody read what was written before: look again after that. */
const restMs = 50
const flushMsMax = 500

export class LogOutput {
  readonly #fd: number
  readonly #write: Write
  #waiting: Buffer[] = []
  #waitingBytes = 0
  #left = 0
  #timer: NodeJS.Timeout | undefined
  #isGone = false

  constructor(fd: number, write: Write = writeSync) {
    this.#fd = fd
    this.#write = write
  }

  write(line: string): void {
    if (this.#isGone) return
    if (this.#waitingBytes > waitingBytesMax) {
      this.#left++
      return
    }
    this.#wait(Buffer.from(line))
    if (this.#timer === undefined) this.#writeOn()
  }

  /** For the end of the process: what waits, if somebody reads it now. */
  flushSync(): void {
    clearTimeout(this.#timer)
    const deadline = performance.now() + flushMsMax
    while (!this.#writeWaiting() && performance.now() < deadline) Atomics.wait(sleeper, 0, 0, restMs)
  }

  #wait(bytes: Buffer): void {
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
  }

  #writeOn(): void {
    this.#timer = undefined
    // Not a reason for the process to live on.
    if (!this.#writeWaiting()) this.#timer = setTimeout(() => this.#writeOn(), restMs).unref()
  }

  /** False: nobody takes it just now. */
  #writeWaiting(): boolean {
    for (;;) {
      const [bytes] = this.#waiting
      if (bytes === undefined) {
        if (this.#left === 0) return true
        this.#wait(
          Buffer.from(`{"level":"warn","msg":"${this.#left} log lines were left out: nobody read them"}\n`),
        )
        this.#left = 0
        continue
      }
      try {
        const written = this.#write(this.#fd, bytes)
        this.#waitingBytes -= written
        if (written < bytes.length) this.#waiting[0] = bytes.subarray(written)
        else this.#waiting.shift()
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code === 'EAGAIN' || code === 'EBUSY') return false
        // The reader is gone, or the disk is full: there is nobody left to tell.
        this.#isGone = code === 'EPIPE' || code === 'ECONNRESET' || code === 'EBADF'
        this.#waiting = []
        this.#waitingBytes = 0
        return true
      }
    }
  }
}

const sleeper = new Int32Array(new SharedArrayBuffer(4))

let output: LogOutput | undefined

/** Standard output. */
export function standardOutput(): LogOutput {
  if (output !== undefined) return output
  // Asking for it makes a pipe one that does not block: a reader that is slow must not stop the server.
  const { fd } = process.stdout
  const made = new LogOutput(fd)
  process.once('exit', () => made.flushSync())
  output = made
  return made
}

/**
 * Writes log lines to a file descriptor immediately, so that the last lines before an exit are not lost.
 *
 * The reader may be slow, stuck or gone (`redrive serve | logger`, and logger ends). This can cost log lines,
 * but never blocks the server: lines that cannot be written are buffered up to a limit, further lines are
 * dropped and counted, and the exit waits for the reader at most `flushMsMax`.
 */
import { writeSync } from 'node:fs'

type Write = (fd: number, bytes: Uint8Array) => number

const bufferedBytesMax = 4 * 1_024 * 1_024
/** How long to wait before the next try, if the reader is slow. */
const retryMs = 50
const flushMsMax = 500

export class LogOutput {
  readonly #fd: number
  readonly #write: Write
  #buffered: Buffer[] = []
  #bufferedBytes = 0
  #droppedLines = 0
  #timer: NodeJS.Timeout | undefined
  #isReaderGone = false

  constructor(fd: number, write: Write = writeSync) {
    this.#fd = fd
    this.#write = write
  }

  write(line: string): void {
    if (this.#isReaderGone) return
    if (this.#bufferedBytes > bufferedBytesMax) {
      this.#droppedLines++
      return
    }
    this.#buffer(Buffer.from(line))
    if (this.#timer === undefined) this.#writeOrRetry()
  }

  /** For the exit of the process: writes the buffered lines, if the reader takes them in time. */
  flushSync(): void {
    clearTimeout(this.#timer)
    const deadline = performance.now() + flushMsMax
    while (!this.#writeBuffered() && performance.now() < deadline) Atomics.wait(sleeper, 0, 0, retryMs)
  }

  #buffer(bytes: Buffer): void {
    this.#buffered.push(bytes)
    this.#bufferedBytes += bytes.length
  }

  #writeOrRetry(): void {
    this.#timer = undefined
    // The timer must not keep the process alive.
    if (!this.#writeBuffered()) this.#timer = setTimeout(() => this.#writeOrRetry(), retryMs).unref()
  }

  /** Returns false if the reader takes no more at the moment. */
  #writeBuffered(): boolean {
    for (;;) {
      const [bytes] = this.#buffered
      if (bytes === undefined) {
        if (this.#droppedLines === 0) return true
        this.#bufferDropNotice()
        continue
      }
      try {
        const written = this.#write(this.#fd, bytes)
        this.#bufferedBytes -= written
        if (written < bytes.length) this.#buffered[0] = bytes.subarray(written)
        else this.#buffered.shift()
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code === 'EAGAIN' || code === 'EBUSY') return false
        // The reader has ended, or the disk is full: the lines cannot be written at all.
        this.#isReaderGone = code === 'EPIPE' || code === 'ECONNRESET' || code === 'EBADF'
        this.#buffered = []
        this.#bufferedBytes = 0
        return true
      }
    }
  }

  #bufferDropNotice(): void {
    const msg = `${this.#droppedLines} log lines were dropped, because the reader of the log was too slow`
    this.#droppedLines = 0
    this.#buffer(Buffer.from(`${JSON.stringify({ level: 'warn', msg })}\n`))
  }
}

const sleeper = new Int32Array(new SharedArrayBuffer(4))

let output: LogOutput | undefined

/** Returns the log output on standard output, the same for all loggers of the process. */
export function getStandardOutput(): LogOutput {
  if (output !== undefined) return output
  // Accessing process.stdout makes a pipe non-blocking: a slow reader must not block the server.
  const { fd } = process.stdout
  const created = new LogOutput(fd)
  process.once('exit', () => created.flushSync())
  output = created
  return created
}

/** The child's end of what start.ts describes. */
import { writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { createInterface } from 'node:readline'
import type { StoreTarget } from '../../../src/storage/open-storage.ts'

export type Task<T> = Readonly<{ target: StoreTarget } & T>

export function readTask<T>(): Task<T> {
  return JSON.parse(process.argv[2] ?? '{}') as Task<T>
}

/** Written before it returns: a line said is a line heard, whenever the process is killed. */
export function report(is: string, facts: object = {}): void {
  writeSync(1, `${JSON.stringify({ is, ...facts })}\n`)
}

// Write the compile cache now, because most of these processes are killed.
setImmediate(() => flushCompileCache())

const words = createInterface({ input: process.stdin })[Symbol.asyncIterator]()

/** Waits for a word on stdin. Exits if stdin is closed: the parent process is gone. */
export async function waitForMessage(word: string): Promise<void> {
  for (;;) {
    const { value, done } = await words.next()
    if (done) process.exit(0)
    if (value === word) return
  }
}

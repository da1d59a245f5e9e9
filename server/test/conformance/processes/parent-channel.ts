/** The task, the reports and the messages of a process that start-process.ts started. */
import { writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { createInterface } from 'node:readline'
import type { StoreTarget } from '../../../src/storage/open-storage.ts'

export type Task<T> = Readonly<{ target: StoreTarget } & T>

export function readTask<T>(): Task<T> {
  return JSON.parse(process.argv[2] ?? '{}') as Task<T>
}

/** Writes synchronously, so that a report is never lost when the process is killed after it. */
export function report(kind: string, facts: object = {}): void {
  writeSync(1, `${JSON.stringify({ kind, ...facts })}\n`)
}

// Write the compile cache now, because most of these processes are killed.
setImmediate(() => flushCompileCache())

const messages = createInterface({ input: process.stdin })[Symbol.asyncIterator]()

/** Waits for a message on stdin. Exits if stdin is closed: the parent process is gone. */
export async function waitForMessage(message: string): Promise<void> {
  for (;;) {
    const { value, done } = await messages.next()
    if (done) process.exit(0)
    if (value === message) return
  }
}

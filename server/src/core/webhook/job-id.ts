/**
 * The ids of webhook jobs. They are xids whose machine and process are the number of the message, and whose
 * counter is the position of the job in the fan-out of that message. So the id of a job leads to its message,
 * and the fan-out of the message leads to its queue and its item, without a table of jobs.
 */

import { createXidGenerator, parseXid } from '../ids/xid.ts'
import type { Instant } from '../time/instant.ts'

export type JobPosition = Readonly<{
  messageNumber: number
  /** The position in the fan-out, from 0. */
  position: number
}>

/** 5 bytes of an xid. */
export const messageNumberMax = 2 ** 40 - 1
/** 3 bytes of an xid. */
export const jobsPerMessageMax = 2 ** 24

/** Returns the ids of the jobs of a message, in the order of its fan-out. */
export function createJobIds(messageNumber: number, createdAt: Instant): () => string {
  const high = Math.floor(messageNumber / 2 ** 16)
  const machine = Uint8Array.of(high >>> 16, high >>> 8, high)
  const next = createXidGenerator({ machine, processId: messageNumber % 2 ** 16, counterStart: -1 })
  return () => next(createdAt)
}

/** Undefined: the text is not an xid. */
export function parseJobId(text: string): JobPosition | undefined {
  const parts = parseXid(text)
  if (parts === undefined) return undefined
  const [first = 0, second = 0, third = 0] = parts.machine
  const high = first * 2 ** 16 + second * 2 ** 8 + third
  return { messageNumber: high * 2 ** 16 + parts.processId, position: parts.counter }
}

const decoder = new TextDecoder()

/** The id of the message of a job, which is the key of its item. */
export function textOfKey(key: Uint8Array | null): string {
  return decoder.decode(key ?? undefined)
}

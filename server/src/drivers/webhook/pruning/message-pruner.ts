/**
 * Exports messages whose jobs are all delivered, and removes them after their retention.
 *
 *     list ─▶ read messages and jobs ─▶ append lines, fsync ─▶ remove the rows
 *
 * - Killed before the fsync: the rows are still there, and the next run starts with them.
 * - Killed after the fsync: the rows are still there, so the next run writes their lines again. A line can be
 *   repeated, and never lost.
 * - A message with a job that is not delivered is postponed: the longer it has waited, the longer, so that
 *   messages that cannot be pruned do not slow down the others.
 * - One server prunes at a time, by a lock. A server that lost it removes nothing.
 */
import { addDuration, type Clock, type Instant, usPerSecond } from '../../../core/time/instant.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { HeldLock } from '../../../storage/contract/locks.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'
import type { Message, PrunableMessage } from '../../../storage/contract/webhooks.ts'
import { isPrunableState } from '../../../storage/shared/rows/webhook-rows.ts'
import type { MessageArchive } from './message-archive.ts'
import { formatMessageLine } from './message-line.ts'

export interface MessagePruner {
  /** Handles all messages whose turn it is, until `signal` aborts. Returns the number of removed messages. */
  pass(signal?: AbortSignal): Promise<number>
  close(): Promise<void>
}

export type PrunerParts = Readonly<{
  storage: () => Pick<StoreReads, 'listPrunable' | 'readMessages' | 'readJobs' | 'listConsumersByNumber'>
  engine: () => Pick<Engine, 'write'>
  clock: Clock
  archive: MessageArchive
  retentionUs: number
  owner: string
}>

/** Messages, payload bytes and jobs of one step, which is one fsync and one transaction. */
const messagesMax = 200
const bytesMax = 16 * 1_024 * 1_024
const jobsMax = 2_000
const lockUs = 5 * 60 * usPerSecond
const postponeUsMin = 10 * 60 * usPerSecond
const postponeUsMax = 24 * 3_600 * usPerSecond

export function createMessagePruner(parts: PrunerParts): MessagePruner {
  const { engine, clock, archive, owner } = parts
  return {
    pass: async (signal) => {
      const now = clock.now()
      const deadline = addDuration(now, lockUs)
      const [lock] = await engine().write([
        { op: 'acquire-lock', name: 'webhooks/pruning', owner, now, deadline },
      ])
      if (lock === null) return 0
      let total = 0
      try {
        for (;;) {
          const removed = await step(parts, lock)
          if (removed === undefined || signal?.aborted === true) return total
          total += removed
        }
      } finally {
        await engine().write([{ op: 'release-lock', lock }])
      }
    },
    close: () => archive.close(),
  }
}

/** Undefined: nothing is left to do. */
async function step(parts: PrunerParts, lock: HeldLock): Promise<number | undefined> {
  const { storage, engine, clock, archive, retentionUs } = parts
  const cutoff = addDuration(clock.now(), -retentionUs)
  const listed = takeBytes(await storage().listPrunable({ before: cutoff, countMax: messagesMax }))
  if (listed.length === 0) return undefined
  const messages = takeJobs(await storage().readMessages(listed.map(({ number }) => number)))
  const examined = await examine(parts, messages)
  const done = examined.filter(({ line }) => line !== null)
  await archive.append(done.flatMap(({ line }) => line ?? []))
  const postponed = examined.flatMap(({ message, line }) =>
    line === null ? [{ number: message.number, pruneAt: postpone(message.receivedAt, cutoff) }] : [],
  )
  const now = clock.now()
  const results = await engine().write([
    { op: 'fence', lock },
    { op: 'prune-messages', numbers: done.map(({ message }) => message.number), postponed },
    { op: 'renew-lock', lock, deadline: addDuration(now, lockUs) },
  ])
  return results[1].removed.length
}

/** Messages of one step, at least one. */
function takeBytes(listed: readonly PrunableMessage[]): readonly PrunableMessage[] {
  return takeWeights(listed, bytesMax, ({ payloadBytes }) => payloadBytes)
}

function takeJobs(messages: readonly Message[]): readonly Message[] {
  return takeWeights(messages, jobsMax, ({ jobs }) => jobs.length)
}

function takeWeights<T>(rows: readonly T[], weightMax: number, weightOf: (row: T) => number): readonly T[] {
  let weight = 0
  const taken: T[] = []
  for (const row of rows) {
    weight += weightOf(row)
    if (taken.length > 0 && weight > weightMax) break
    taken.push(row)
  }
  return taken
}

type Examined = Readonly<{ message: Message; line: string | null }>

async function examine({ storage }: PrunerParts, messages: readonly Message[]): Promise<Examined[]> {
  const jobs = messages.flatMap((message) => message.jobs)
  const numbers = [...new Set(jobs.map(({ consumerNumber }) => consumerNumber))]
  const [states, consumers] = await Promise.all([
    storage().readJobs(jobs),
    storage().listConsumersByNumber(numbers),
  ])
  const byNumber = new Map(consumers.map((consumer) => [consumer.number, consumer]))
  let at = 0
  return messages.map((message) => {
    const own = states.slice(at, at + message.jobs.length)
    at += message.jobs.length
    return { message, line: own.every(isPrunableState) ? formatMessageLine(message, own, byNumber) : null }
  })
}

/** The next turn comes after half of the time that the message is older than its retention. */
function postpone(receivedAt: Instant, cutoff: Instant): Instant {
  const overdueUs = Math.max(cutoff - receivedAt, 0)
  return addDuration(cutoff, Math.min(Math.max(overdueUs / 2, postponeUsMin), postponeUsMax))
}

/**
 * The one door for letters that died elsewhere: HTTP, webhook delivery and the Kafka bridge come in here.
 *
 * Concurrent calls for a dead queue share a transaction (storage/lane.ts). What was answered is on disk; a call
 * that failed half-way is repeated, and what is there already is answered with the letter that it is.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../core/instant.ts'
import type { Engine, Trace } from '../engine/engine.ts'
import { KnownError } from '../errors.ts'
import type { ImportResult, ItemToImport } from '../storage/contract/items.ts'
import type { Command, Storage } from '../storage/contract/storage.ts'
import { Lane } from '../storage/shared/batch-lane.ts'
import { checkCommand } from '../storage/shared/check-command.ts'
import { queueNotFound } from '../storage/shared/queue-checks.ts'
import { auditOf } from './audit.ts'
import type { Captured, CapturedLetter } from './letters.ts'
import { stepLettersMax } from './parts.ts'

export interface Capture {
  capture(queue: string, letters: readonly CapturedLetter[], trace?: Trace): Promise<readonly Captured[]>
  /** Resolves when everything that was given is written. */
  whenIdle(): Promise<void>
}

type Step = {
  readonly weight: number
  readonly items: readonly ItemToImport[]
  /** Of the call, with its first step. */
  readonly audit: readonly Command[]
  resolve(captured: readonly Captured[]): void
  reject(error: unknown): void
}
type Door = { readonly lane: Lane<Step>; readonly partitions: number; next: number }

/** Two under way: one is written while the callers of the other come back. */
const batchesMax = 2

export function createCapture(
  parts: Readonly<{ storage: Storage; engine: Pick<Engine, 'noticeItems'>; clock: Clock }>,
): Capture {
  const { storage, engine, clock } = parts
  const doors = new Map<string, Promise<Door>>()

  const openDoor = async (queue: string): Promise<Door> => {
    const found = await storage.getQueue(queue)
    if (found === null) throw queueNotFound(queue)
    const door: Door = {
      partitions: found.partitions,
      next: 0,
      lane: new Lane<Step>({ weightMax: stepLettersMax, batchesMax }, (batch) => write(queue, door, batch)),
    }
    return door
  }
  const doorOf = (queue: string): Promise<Door> => {
    let door = doors.get(queue)
    if (door === undefined) {
      door = openDoor(queue)
      doors.set(queue, door)
      door.catch(() => doors.delete(queue))
    }
    return door
  }

  const write = async (queue: string, door: Door, batch: readonly Step[]): Promise<void> => {
    // Source ids are unique in the whole queue, so any partition will do, also for a repeat.
    const partition = door.next++ % door.partitions
    const { items, places } = withoutRepeats(batch)
    try {
      const [imported] = await storage.write([
        { op: 'import', queue, partition, items, now: clock.now() },
        ...batch.flatMap(({ audit }) => audit),
      ] as const)
      const captured = (imported as readonly ImportResult[]).map(capturedOf)
      const count = captured.filter(({ isNew }) => isNew).length
      if (count > 0) engine.noticeItems([{ queue, partition, count }])
      const answered = new Set<number>()
      for (const [index, step] of batch.entries()) {
        const own = (places[index] as readonly number[]).map((place) => {
          const there = captured[place] as Captured
          const isFirst = !answered.has(place)
          answered.add(place)
          return isFirst ? there : { ...there, isNew: false }
        })
        step.resolve(own)
      }
    } catch (error) {
      // The queue may have been made anew, with other partitions.
      if (error instanceof KnownError && error.status < 500) doors.delete(queue)
      const isOfOne = batch.length > 1 && error instanceof KnownError && error.status < 500
      if (isOfOne) for (const step of batch) await write(queue, door, [step])
      else for (const { reject } of batch) reject(error)
    }
  }

  return {
    capture: async (queue, letters, trace) => {
      if (letters.length === 0) return []
      const now = clock.now()
      const items = letters.map(itemOf)
      // All of them before any is stored: only the store's own trouble can end it in between.
      checkCommand({ op: 'import', queue, partition: 0, items, now })
      const put = async (
        step: readonly ItemToImport[],
        audit: readonly Command[],
      ): Promise<readonly Captured[]> => {
        const { lane } = await doorOf(queue)
        return new Promise((resolve, reject) => {
          lane.add({ weight: step.length, items: step, audit, resolve, reject })
        })
      }
      const captured: Captured[] = []
      while (captured.length < items.length) {
        const step = items.slice(captured.length, captured.length + stepLettersMax)
        const audit =
          trace === undefined || captured.length > 0
            ? []
            : [auditOf(clock, trace, 'letters.capture', [queue], { letters: items.length })]
        const stored = await put(step, audit).catch((error: unknown) => {
          // The queue was made anew, with fewer partitions: its door is, too.
          if (error instanceof KnownError && error.code === 'PARTITION_NOT_FOUND') return put(step, audit)
          throw error
        })
        captured.push(...stored)
      }
      return captured
    },
    whenIdle: async () => {
      for (const door of [...doors.values()]) await (await door.catch(() => undefined))?.lane.whenIdle()
    },
  }
}

function itemOf(letter: CapturedLetter): ItemToImport {
  const { sourceId, origin, payload, key, headers, failure, history, diedAt } = letter
  // A letter is found, and told from live work, by its source id: it always has one.
  const source = sourceId ?? `letter:${randomUUID()}`
  return {
    sourceId: source,
    origin,
    payload,
    key,
    headers,
    failure,
    history,
    ...(diedAt !== undefined && { diedAt }),
  }
}

function capturedOf(imported: ImportResult): Captured {
  if (imported.id !== null) return { letterId: imported.id, isNew: true }
  if (imported.existingId === undefined)
    throw new Error('the store skipped a letter and did not say what is there')
  return { letterId: imported.existingId, isNew: false }
}

/** Each source id once, and for every letter of every step its place among them. */
function withoutRepeats(batch: readonly Step[]): { items: ItemToImport[]; places: number[][] } {
  const items: ItemToImport[] = []
  const placeOf = new Map<string, number>()
  const places = batch.map((step) =>
    step.items.map((item) => {
      const source = item.sourceId as string
      const place = placeOf.get(source) ?? items.push(item) - 1
      placeOf.set(source, place)
      return place
    }),
  )
  return { items, places }
}

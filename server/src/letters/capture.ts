/**
 * Captures letters that died outside Redrive: the only entry point for HTTP, webhook delivery and the Kafka
 * bridge.
 *
 * Concurrent calls for a dead queue share a transaction (storage/shared/batch-lane.ts). A captured letter is
 * on disk before the call resolves. A call that failed halfway can be repeated: letters that are already
 * stored are returned with the id that they have.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../core/instant.ts'
import type { Engine, Trace } from '../engine/engine.ts'
import { KnownError } from '../errors.ts'
import type { ImportResult, ItemToImport } from '../storage/contract/items.ts'
import type { Command, StoreReads } from '../storage/contract/storage.ts'
import { BatchLane } from '../storage/shared/batch-lane.ts'
import { checkCommand } from '../storage/shared/check-command.ts'
import { queueNotFound } from '../storage/shared/queue-checks.ts'
import { auditOf } from './audit.ts'
import type { Captured, CapturedLetter } from './letters.ts'
import { stepLettersMax } from './parts.ts'

export interface Capture {
  capture(queue: string, letters: readonly CapturedLetter[], trace?: Trace): Promise<readonly Captured[]>
  /** Resolves when all captures in progress are written. */
  whenIdle(): Promise<void>
}

type Step = {
  readonly weight: number
  readonly items: readonly ItemToImport[]
  /** The audit row of the call, written with its first step. */
  readonly audit: readonly Command[]
  resolve(captured: readonly Captured[]): void
  reject(error: unknown): void
}
type CaptureLane = { readonly lane: BatchLane<Step>; readonly partitions: number; next: number }

/** One batch is written while the callers of the other one send their next letters. */
const batchesMax = 2

export function createCapture(
  parts: Readonly<{ storage: StoreReads; engine: Pick<Engine, 'write'>; clock: Clock }>,
): Capture {
  const { storage, engine, clock } = parts
  const lanes = new Map<string, Promise<CaptureLane>>()

  const openLane = async (queue: string): Promise<CaptureLane> => {
    const found = await storage.getQueue(queue)
    if (found === null) throw queueNotFound(queue)
    const captureLane: CaptureLane = {
      partitions: found.partitions,
      next: 0,
      lane: new BatchLane<Step>({ weightMax: stepLettersMax, batchesMax }, (batch) =>
        write(queue, captureLane, batch),
      ),
    }
    return captureLane
  }
  const getLane = (queue: string): Promise<CaptureLane> => {
    let captureLane = lanes.get(queue)
    if (captureLane === undefined) {
      captureLane = openLane(queue)
      lanes.set(queue, captureLane)
      captureLane.catch(() => lanes.delete(queue))
    }
    return captureLane
  }

  const write = async (queue: string, captureLane: CaptureLane, batch: readonly Step[]): Promise<void> => {
    // Source ids are unique in the whole queue, so any partition can be used, also for a repeated letter.
    const partition = captureLane.next++ % captureLane.partitions
    const { items, places } = mergeRepeats(batch)
    try {
      const [imported] = await engine.write([
        { op: 'import', queue, partition, items, now: clock.now() },
        ...batch.flatMap(({ audit }) => audit),
      ] as const)
      const captured = (imported as readonly ImportResult[]).map(toCaptured)
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
      // The queue may have been deleted and created again with another number of partitions.
      if (error instanceof KnownError && error.status < 500) lanes.delete(queue)
      const isOfOne = batch.length > 1 && error instanceof KnownError && error.status < 500
      if (isOfOne) for (const step of batch) await write(queue, captureLane, [step])
      else for (const { reject } of batch) reject(error)
    }
  }

  return {
    capture: async (queue, letters, trace) => {
      if (letters.length === 0) return []
      const now = clock.now()
      const items = letters.map(toItemToImport)
      // Check all items before storing any, so that only a failure of the store can leave the call half done.
      checkCommand({ op: 'import', queue, partition: 0, items, now })
      const put = async (
        step: readonly ItemToImport[],
        audit: readonly Command[],
      ): Promise<readonly Captured[]> => {
        const { lane } = await getLane(queue)
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
          // The queue was created again with fewer partitions: use its new lane.
          if (error instanceof KnownError && error.code === 'PARTITION_NOT_FOUND') return put(step, audit)
          throw error
        })
        captured.push(...stored)
      }
      return captured
    },
    whenIdle: async () => {
      for (const captureLane of [...lanes.values()])
        await (await captureLane.catch(() => undefined))?.lane.whenIdle()
    },
  }
}

function toItemToImport(letter: CapturedLetter): ItemToImport {
  const { sourceId, origin, payload, key, headers, failure, history, diedAt } = letter
  // Letters are found by their source id and distinguished from live items by it, so every letter gets one.
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

function toCaptured(imported: ImportResult): Captured {
  if (imported.id !== null) return { letterId: imported.id, isNew: true }
  if (imported.existingId === undefined)
    throw new Error('the store skipped a letter and did not say what is there')
  return { letterId: imported.existingId, isNew: false }
}

/** Returns each source id once, and for every letter of every step its index in that list. */
function mergeRepeats(batch: readonly Step[]): { items: ItemToImport[]; places: number[][] } {
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

/**
 * Captures letters that died outside Redrive: the only entry point for HTTP, webhook delivery and the Kafka
 * bridge.
 *
 * Concurrent calls for a dead queue share a transaction (storage/shared/batch-lane.ts). A captured letter is
 * on disk before the call resolves. A call that failed halfway can be repeated: letters that are already
 * stored are returned with the id that they have.
 */

import { randomUUID } from 'node:crypto'
import { type QueueName, toRootId } from '../core/ids/ids.ts'
import type { Clock } from '../core/time/instant.ts'
import type { Attribution } from '../engine/engine.ts'
import { sumPayloads } from '../engine/quotas/quotas.ts'
import { isCallersFault, KnownError } from '../errors.ts'
import type { ImportResult, ItemToImport } from '../storage/contract/items.ts'
import type { Command, StoreReads } from '../storage/contract/storage.ts'
import { BatchLane, handleOneByOne } from '../storage/shared/batch-lane.ts'
import { stepBytesMax, takeStep } from '../storage/shared/byte-budget.ts'
import { checkCommand } from '../storage/shared/items/check-command.ts'
import { createQueueNotFoundError } from '../storage/shared/items/queue-checks.ts'
import { createAuditCommand } from './audit.ts'
import type { Captured, CapturedLetter } from './letters.ts'
import { type LettersParts, stepLettersMax } from './parts.ts'

type Step = {
  readonly weight: number
  readonly items: readonly ItemToImport[]
  /** The audit row of the call, written with its first step. */
  readonly audit: readonly Command[]
  resolve(captured: readonly Captured[]): void
  reject(error: unknown): void
}
type CaptureLane = {
  readonly lane: BatchLane<Step>
  readonly namespace: string
  readonly partitions: number
  next: number
}

/** One batch is written while the callers of the other one send their next letters. */
const batchesMax = 2

export class Capture {
  readonly #storage: StoreReads
  readonly #engine: LettersParts['engine']
  readonly #clock: Clock
  readonly #lanes = new Map<string, Promise<CaptureLane>>()

  constructor({ storage, engine, clock }: Pick<LettersParts, 'storage' | 'engine' | 'clock'>) {
    this.#storage = storage
    this.#engine = engine
    this.#clock = clock
  }

  async capture(
    queue: QueueName,
    letters: readonly CapturedLetter[],
    attribution?: Attribution,
  ): Promise<readonly Captured[]> {
    if (letters.length === 0) return []
    const items = letters.map(toItemToImport)
    // Check all items before storing any, so that only a failure of the store can leave the call half done.
    checkCommand({ op: 'import', queue, partition: 0, items, now: this.#clock.now() })
    const release = await this.#admit(queue, items)
    try {
      return await this.#captureItems(queue, items, attribution)
    } finally {
      release()
    }
  }

  /** Rejects with QUOTA_EXCEEDED. Returns a function to call when the items are written. */
  async #admit(queue: QueueName, items: readonly ItemToImport[]): Promise<() => void> {
    const { quotas } = this.#engine
    const { namespace } = await this.#getLane(queue)
    return (await quotas?.admit(namespace, items.length, () => sumPayloads(items))) ?? (() => {})
  }

  async #captureItems(
    queue: QueueName,
    items: readonly ItemToImport[],
    attribution: Attribution | undefined,
  ): Promise<readonly Captured[]> {
    const captured: Captured[] = []
    while (captured.length < items.length) {
      const { step } = takeStep(
        items.slice(captured.length, captured.length + stepLettersMax),
        ({ payload }) => payload.byteLength,
        stepLettersMax,
      )
      const isFirst = captured.length === 0
      const audit =
        attribution === undefined || !isFirst
          ? []
          : [
              createAuditCommand(this.#clock, attribution, 'letters.capture', [queue], {
                letters: items.length,
              }),
            ]
      captured.push(...(await this.#putStep(queue, step, audit)))
    }
    return captured
  }

  /** Resolves when all captures in progress are written. */
  async waitUntilIdle(): Promise<void> {
    for (const opening of [...this.#lanes.values()]) {
      const captureLane = await opening.catch(() => undefined)
      await captureLane?.lane.waitUntilIdle()
    }
  }

  async #putStep(
    queue: QueueName,
    items: readonly ItemToImport[],
    audit: readonly Command[],
  ): Promise<readonly Captured[]> {
    try {
      return await this.#put(queue, items, audit)
    } catch (error) {
      // The queue was created again with fewer partitions: use its new lane.
      if (error instanceof KnownError && error.code === 'PARTITION_NOT_FOUND') {
        return this.#put(queue, items, audit)
      }
      throw error
    }
  }

  async #put(
    queue: QueueName,
    items: readonly ItemToImport[],
    audit: readonly Command[],
  ): Promise<readonly Captured[]> {
    const { lane } = await this.#getLane(queue)
    return new Promise((resolve, reject) => {
      lane.add({ weight: weigh(items), items, audit, resolve, reject })
    })
  }

  #getLane(queue: QueueName): Promise<CaptureLane> {
    const known = this.#lanes.get(queue)
    if (known !== undefined) return known
    const opening = this.#openLane(queue)
    this.#lanes.set(queue, opening)
    opening.catch(() => this.#lanes.delete(queue))
    return opening
  }

  async #openLane(queue: QueueName): Promise<CaptureLane> {
    const found = await this.#storage.getQueue(queue)
    if (found === null) throw createQueueNotFoundError(queue)
    const captureLane: CaptureLane = {
      namespace: found.namespace,
      partitions: found.partitions,
      next: 0,
      lane: new BatchLane<Step>({ weightMax: stepLettersMax, batchesMax }, (batch) =>
        this.#write(queue, captureLane, batch),
      ),
    }
    return captureLane
  }

  async #write(queue: QueueName, captureLane: CaptureLane, batch: readonly Step[]): Promise<void> {
    // Source ids are unique in the whole queue, so any partition can be used, also for a repeated letter.
    const partition = captureLane.next++ % captureLane.partitions
    const { items, indexes } = mergeRepeats(batch)
    try {
      const [imported] = await this.#engine.write([
        { op: 'import', queue, partition, items, now: this.#clock.now() },
        ...batch.flatMap(({ audit }) => audit),
      ] as const)
      resolveSteps(batch, indexes, (imported as readonly ImportResult[]).map(toCaptured))
    } catch (error) {
      // The queue may have been deleted and created again with another number of partitions.
      if (isCallersFault(error)) this.#lanes.delete(queue)
      if (await handleOneByOne(batch, error, (step) => this.#write(queue, captureLane, [step]))) return
      for (const { reject } of batch) reject(error)
    }
  }
}

/** Steps share a transaction up to `stepLettersMax` letters, or `stepBytesMax` bytes of payloads. */
function weigh(items: readonly ItemToImport[]): number {
  const bytes = items.reduce((sum, { payload }) => sum + payload.byteLength, 0)
  return Math.min(stepLettersMax, Math.max(items.length, Math.ceil((bytes / stepBytesMax) * stepLettersMax)))
}

/** A source id that several steps named is new for the first of them only. */
function resolveSteps(
  batch: readonly Step[],
  indexes: readonly (readonly number[])[],
  captured: readonly Captured[],
): void {
  const reported = new Set<number>()
  for (const [at, step] of batch.entries()) {
    const results = (indexes[at] ?? []).map((index) => {
      const result = captured[index] as Captured
      const isFirst = !reported.has(index)
      reported.add(index)
      return isFirst ? result : { ...result, isNew: false }
    })
    step.resolve(results)
  }
}

function toItemToImport(letter: CapturedLetter): ItemToImport {
  const { sourceId, origin, payload, key, headers, failure, history, deadLetteredAt } = letter
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
    ...(deadLetteredAt !== undefined && { deadLetteredAt }),
  }
}

function toCaptured(imported: ImportResult): Captured {
  if (imported.id !== null) return { letterId: toRootId(imported.id), isNew: true }
  if (imported.existingId === undefined)
    throw new Error('the store skipped a letter and did not say what is there')
  return { letterId: imported.existingId, isNew: false }
}

/** Returns each source id once, and for every letter of every step its index in that list. */
function mergeRepeats(batch: readonly Step[]): { items: ItemToImport[]; indexes: number[][] } {
  const items: ItemToImport[] = []
  const indexBySource = new Map<string, number>()
  const indexes = batch.map((step) =>
    step.items.map((item) => {
      const source = item.sourceId as string
      const index = indexBySource.get(source) ?? items.push(item) - 1
      indexBySource.set(source, index)
      return index
    }),
  )
  return { items, indexes }
}

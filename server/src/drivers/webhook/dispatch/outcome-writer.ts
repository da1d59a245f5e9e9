/**
 * Writes the outcomes of pushes, many in one transaction: the jobs of all consumers, their attempts, and what
 * the attempts mean for the breakers. A store that does not respond is asked again until the lease of a job
 * has ended: from then on the job belongs to another push.
 */
import type { ItemId, QueueName } from '../../../core/ids/ids.ts'
import type { Clock, Instant } from '../../../core/time/instant.ts'
import type { DeliveryOutcome } from '../../../core/webhook/delivery/delivery-outcome.ts'
import type { Engine } from '../../../engine/engine.ts'
import { KnownError } from '../../../errors.ts'
import type { NewAttempt, PutDelivery } from '../../../storage/contract/deliveries.ts'
import type { Complete, Retry, SettleResult, Unlease } from '../../../storage/contract/items.ts'

export type JobOutcome = Readonly<{
  queue: QueueName
  itemId: ItemId
  leaseDeadline: Instant
  outcome: DeliveryOutcome
  attempt: NewAttempt | null
  /** The store writes these if the job dies: its letter has a copy of the payload. */
  payloadBytes: number
}>

export type DeliveryChangeCall = Readonly<{
  command: PutDelivery
  /** Called once, with whether the change was stored. */
  onWritten(isPut: boolean): void
}>

export type OutcomeWriterParts = Readonly<{
  engine: () => Pick<Engine, 'write'>
  clock: Clock
  onError(error: unknown): void
  /** Outcomes were written, so there is room for more. */
  onWritten(): void
}>

const outcomesMax = 1_000
/**
 * Otherwise one write would copy a message a thousand times if a thousand consumers fail. Less than other
 * steps write at once (16 MiB): broadcasts wait for these writes.
 */
const payloadBytesMax = 4 * 1_024 * 1_024
/** One batch is written while the next one collects. */
const writesMax = 2
const retryMs = 500

type Batch = { outcomes: JobOutcome[]; changes: DeliveryChangeCall[] }

export class OutcomeWriter {
  readonly #parts: OutcomeWriterParts
  #waiting: Batch = { outcomes: [], changes: [] }
  readonly #writes = new Set<Promise<void>>()
  #isScheduled = false
  #pausedUntilMs = 0

  constructor(parts: OutcomeWriterParts) {
    this.#parts = parts
  }

  /** Outcomes that are not stored yet. */
  get size(): number {
    return this.#waiting.outcomes.length
  }

  add(outcome: JobOutcome): void {
    this.#waiting.outcomes.push(outcome)
    this.#schedule()
  }

  change(call: DeliveryChangeCall): void {
    this.#waiting.changes.push(call)
    this.#schedule()
  }

  /** Resolves when nothing waits. Outcomes that a broken store refuses are given up once their leases end. */
  async waitUntilIdle(): Promise<void> {
    while (this.#writes.size > 0 || !isEmpty(this.#waiting)) {
      this.#schedule()
      await Promise.race([...this.#writes, new Promise((resolve) => setTimeout(resolve, 20))])
    }
  }

  /** Outcomes that arrive in the same turn of the event loop are written together. */
  #schedule(): void {
    if (this.#isScheduled || this.#writes.size >= writesMax) return
    this.#isScheduled = true
    const waitMs = this.#pausedUntilMs - performance.now()
    const start = (): void => {
      this.#isScheduled = false
      this.#start()
    }
    if (waitMs > 0) setTimeout(start, waitMs)
    else setImmediate(start)
  }

  #start(): void {
    if (isEmpty(this.#waiting) || this.#writes.size >= writesMax) return
    const { outcomes, changes } = this.#waiting
    const batch = { outcomes: outcomes.splice(0, countBatch(outcomes)), changes: changes.splice(0) }
    const written = this.#write(batch).finally(() => {
      this.#writes.delete(written)
      if (!isEmpty(this.#waiting)) this.#schedule()
      this.#parts.onWritten()
    })
    this.#writes.add(written)
  }

  async #write({ outcomes, changes }: Batch): Promise<void> {
    const { engine, clock, onError } = this.#parts
    const now = clock.now()
    const live = outcomes.filter(({ leaseDeadline }) => leaseDeadline > now)
    const settles = toCommands(live, now)
    const attempts = live.flatMap(({ attempt }) => attempt ?? [])
    try {
      const results: readonly unknown[] = await engine().write([
        ...settles,
        ...(attempts.length > 0 ? [{ op: 'record-attempts', attempts } as const] : []),
        ...changes.map(({ command }) => command),
      ])
      this.#repeatRefused(live, settles, results)
      for (const [at, { onWritten }] of changes.entries()) {
        onWritten((results[results.length - changes.length + at] as { isPut: boolean }).isPut)
      }
    } catch (error) {
      onError(error)
      if (error instanceof KnownError && error.code === 'QUEUE_NOT_FOUND') {
        await this.#writeEachQueue(live, changes)
        return
      }
      this.#pausedUntilMs = performance.now() + retryMs
      this.#waiting.outcomes.unshift(...live)
      this.#waiting.changes.unshift(...changes)
    }
  }

  /** A person deleted the queue of a consumer: its jobs are gone, and those of the others are written. */
  async #writeEachQueue(outcomes: readonly JobOutcome[], changes: DeliveryChangeCall[]): Promise<void> {
    const queues = [...Map.groupBy(outcomes, ({ queue }) => queue).values()]
    if (queues.length > 1) for (const own of queues) await this.#write({ outcomes: own, changes: [] })
    if (changes.length > 0) this.#waiting.changes.unshift(...changes)
  }

  /**
   * A command is refused as a whole if one of its jobs is no longer leased, for example because a person
   * deleted it. The others are written again, without their attempts, which are stored already.
   */
  #repeatRefused(
    outcomes: readonly JobOutcome[],
    commands: readonly SettleCommand[],
    results: readonly unknown[],
  ): void {
    for (const [at, command] of commands.entries()) {
      if (command.op === 'unlease') continue
      const result = results[at] as SettleResult
      if (result.isSettled) continue
      const gone = new Set(result.refused.map(({ id }) => id))
      const ids = new Set(command.op === 'complete' ? command.ids : command.items.map(({ id }) => id))
      for (const outcome of outcomes) {
        const isOfCommand = outcome.queue === command.queue && ids.has(outcome.itemId)
        if (isOfCommand && !gone.has(outcome.itemId))
          this.#waiting.outcomes.push({ ...outcome, attempt: null })
      }
    }
  }
}

/** At least one. */
function countBatch(outcomes: readonly JobOutcome[]): number {
  let [count, bytes] = [0, 0]
  for (const { payloadBytes } of outcomes) {
    bytes += payloadBytes
    if (count === outcomesMax || (count > 0 && bytes > payloadBytesMax)) break
    count += 1
  }
  return count
}

type SettleCommand = Complete | Retry | Unlease

/** Neighbouring commands of one kind are one batch for the store, so the commands are grouped by kind. */
function toCommands(outcomes: readonly JobOutcome[], now: Instant): SettleCommand[] {
  const completes: Complete[] = []
  const retries: Retry[] = []
  const unleases: Unlease[] = []
  // In the order of their names, so that two servers lock rows in the same order.
  const byQueue = [...Map.groupBy(outcomes, ({ queue }) => queue)].sort(([a], [b]) => (a < b ? -1 : 1))
  for (const [queue, own] of byQueue) {
    const target = { queue, partition: 0, now }
    const { delivered, returned, items } = groupByKind(own)
    if (delivered.length > 0) completes.push({ op: 'complete', ...target, ids: delivered })
    if (items.length > 0) retries.push({ op: 'retry', ...target, items })
    if (returned.length > 0) unleases.push({ op: 'unlease', ...target, ids: returned })
  }
  return [...completes, ...retries, ...unleases]
}

function groupByKind(outcomes: readonly JobOutcome[]) {
  const [delivered, returned, items] = [[] as ItemId[], [] as ItemId[], [] as Retry['items'][number][]]
  for (const { itemId: id, outcome } of outcomes) {
    if (outcome.kind === 'delivered') delivered.push(id)
    else if (outcome.kind === 'returned') returned.push(id)
    else {
      const availableAt = outcome.kind === 'retry' ? outcome.availableAt : undefined
      items.push({ id, isDead: outcome.kind === 'dead', error: outcome.error, availableAt })
    }
  }
  return { delivered, returned, items }
}

function isEmpty({ outcomes, changes }: Batch): boolean {
  return outcomes.length === 0 && changes.length === 0
}

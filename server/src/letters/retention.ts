/**
 * Retention: ended letters move to the archive after `keepUs`, and are purged from it after `archiveUs`.
 * Waiting letters and redrives in progress are never touched. In a dead queue of class `financial`, DEAD
 * letters stay, too: only a person removes them.
 *
 * One server works at a time, in batches of one transaction each, limited by number and bytes. A batch
 * deletes exactly the rows that it archives, by the class that the queue has in that transaction.
 */

import { type EndedState, listArchivedStates } from '../core/dead-letters/letter-class.ts'
import type { QueueName } from '../core/ids/ids.ts'
import { addDuration, type Clock, usPerSecond } from '../core/time/instant.ts'
import type { Engine } from '../engine/engine.ts'
import { KnownError } from '../errors.ts'
import type { LetterCursor, LetterScan } from '../storage/contract/letters.ts'
import type { HeldLock, RenewLock } from '../storage/contract/locks.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { searchLetters } from '../storage/search/search-letters.ts'
import { createAuditContext, policyAttribution } from './audit.ts'
import type { RetentionDone, RetentionOptions } from './letters.ts'
import type { LettersLog, RetentionPolicy } from './parts.ts'

const dayUs = 24 * 3_600 * usPerSecond
export const defaultRetention: RetentionPolicy = { keepUs: 30 * dayUs, archiveUs: 365 * dayUs }

const batchSizeDefault = 1_000
export const retentionBatchMax = 10_000
const lockName = 'letters/retention'
/** More queues than a store can have: each of them has its own counts. */
const queuesMax = 2 ** 31 - 1
const lockUs = 60 * usPerSecond

export class Retention {
  readonly #storage: StoreReads
  readonly #engine: Pick<Engine, 'write'>
  readonly #clock: Clock
  readonly #owner: string
  readonly #policy: RetentionPolicy
  readonly #log: LettersLog

  constructor(
    parts: Readonly<{
      storage: StoreReads
      engine: Pick<Engine, 'write'>
      clock: Clock
      owner: string
      policy: RetentionPolicy
      log: LettersLog
    }>,
  ) {
    this.#storage = parts.storage
    this.#engine = parts.engine
    this.#clock = parts.clock
    this.#owner = parts.owner
    this.#policy = parts.policy
    this.#log = parts.log
  }

  /** One batch per queue; true if more is left. Does nothing while another server runs retention. */
  async pass(): Promise<boolean> {
    const lock = await this.#acquire()
    if (lock === null) return false
    try {
      return (await this.#work(lock, { batchSize: batchSizeDefault, batchesMax: 1 })).isMore
    } finally {
      await this.#release(lock)
    }
  }

  async run({ batchSize, signal, onDone }: RetentionOptions): Promise<readonly RetentionDone[]> {
    if (!Number.isInteger(batchSize) || batchSize < 1 || batchSize > retentionBatchMax) {
      throw new KnownError(
        'BAD_REQUEST',
        `the batch size is ${batchSize}; it must be a whole number from 1 to ${retentionBatchMax}`,
      )
    }
    const lock = await this.#acquire()
    if (lock === null)
      throw new KnownError('RETENTION_BUSY', 'retention is already running on another server')
    try {
      const bounds = { batchSize, batchesMax: Number.POSITIVE_INFINITY, ...(signal && { signal }) }
      return (await this.#work(lock, bounds, onDone)).done
    } finally {
      await this.#release(lock)
    }
  }

  /** Counts what a run would do now. Changes nothing. */
  async preview(): Promise<readonly RetentionDone[]> {
    const found: RetentionDone[] = []
    for (const { queue, states } of await this.#listCandidates()) {
      const archived = await this.#countEnded(queue, states)
      const purged = await this.#countArchived(queue)
      if (archived + purged > 0) found.push({ queue, archived, purged })
    }
    return found
  }

  async #acquire(): Promise<HeldLock | null> {
    const now = this.#clock.now()
    const deadline = addDuration(now, lockUs)
    const [lock] = await this.#engine.write([
      { op: 'acquire-lock', name: lockName, owner: this.#owner, now, deadline },
    ])
    return lock
  }

  async #release(lock: HeldLock): Promise<void> {
    await this.#engine.write([{ op: 'release-lock', lock }])
  }

  #renew(lock: HeldLock): RenewLock {
    return { op: 'renew-lock', lock, deadline: addDuration(this.#clock.now(), lockUs) }
  }

  /**
   * Queues with ended letters or with archived letters. `states`: which states to look at. Each batch decides
   * again what to move, because the class of the queue may have changed.
   */
  async #listCandidates(): Promise<readonly Readonly<{ queue: QueueName; states: readonly EndedState[] }>[]> {
    const [ended, counts] = await Promise.all([
      this.#storage.countLetters({ filter: { states: ['done', 'dead', 'discarded'] }, by: ['queue'] }),
      this.#storage.readQueueCounts({ countMax: queuesMax }),
    ])
    const names = new Set(ended.flatMap(({ queue }) => queue ?? []))
    for (const { queue, archived } of counts) if (queue !== null && archived > 0) names.add(queue)
    const found: { queue: QueueName; states: readonly EndedState[] }[] = []
    for (const name of [...names].sort()) {
      const queue = await this.#storage.getQueue(name)
      if (queue !== null) found.push({ queue: name, states: listArchivedStates(queue.letterClass) })
    }
    return found
  }

  #listEnded(
    queue: QueueName,
    states: readonly EndedState[],
    endedBefore: number,
    countMax: number,
    after?: LetterCursor,
  ): Promise<LetterScan> {
    return searchLetters(this.#storage, {
      filter: { queues: [queue], states, updated: { until: endedBefore - 1 } },
      order: 'updatedAt',
      isDescending: false,
      ...(after !== undefined && { after }),
      countMax,
      bytes: 'none',
    })
  }

  /** Letters that were archived before `until`. */
  #listArchived(
    queue: QueueName,
    until: number,
    countMax: number,
    after?: LetterCursor,
  ): Promise<LetterScan> {
    return searchLetters(this.#storage, {
      filter: { queues: [queue], archived: { until: until - 1 } },
      order: 'archivedAt',
      isDescending: true,
      ...(after !== undefined && { after }),
      countMax,
      bytes: 'none',
    })
  }

  /** Checked first, because most passes have nothing to move and then need no write. */
  async #isAnyEnded(queue: QueueName, states: readonly EndedState[], endedBefore: number): Promise<boolean> {
    return (await this.#listEnded(queue, states, endedBefore, 1)).found.length > 0
  }

  async #isAnyArchived(queue: QueueName, archivedBefore: number): Promise<boolean> {
    const { found, next } = await this.#listArchived(queue, archivedBefore, 1)
    // A search that ran out of time may have passed only items that are not letters.
    return found.length > 0 || next !== null
  }

  async #countEnded(queue: QueueName, states: readonly EndedState[]): Promise<number> {
    const endedBefore = this.#clock.now() - this.#policy.keepUs
    let count = 0
    for (let after: LetterCursor | null | undefined; after !== null; ) {
      const page = await this.#listEnded(queue, states, endedBefore, batchSizeDefault, after)
      count += page.found.length
      after = page.next
    }
    return count
  }

  async #countArchived(queue: QueueName): Promise<number> {
    const until = this.#clock.now() - this.#policy.archiveUs
    let count = 0
    for (let after: LetterCursor | null | undefined; after !== null; ) {
      const page = await this.#listArchived(queue, until, batchSizeDefault, after)
      count += page.found.length
      after = page.next
    }
    return count
  }

  async #archiveQueue(
    queue: QueueName,
    states: readonly EndedState[],
    lock: HeldLock,
    { batchSize, batchesMax, signal }: Bounds,
  ): Promise<Moved> {
    const now = this.#clock.now()
    const endedBefore = now - this.#policy.keepUs
    if (!(await this.#isAnyEnded(queue, states, endedBefore))) return nothing
    return runBatches(batchesMax, signal, async () => {
      const audit = createAuditContext(this.#clock, policyAttribution, 'letters.archive', {
        endedBefore,
        batchSize,
      })
      const due = { endedBefore, countMax: batchSize, now, audit }
      const command = { op: 'archive', queue, states: 'by-class', ...due } as const
      const [, , { archived, isMore }] = await this.#engine.write([
        { op: 'fence', lock },
        this.#renew(lock),
        command,
      ])
      return { count: archived, isMore }
    })
  }

  async #purgeQueue(
    queue: QueueName,
    lock: HeldLock,
    { batchSize, batchesMax, signal }: Bounds,
  ): Promise<Moved> {
    const archivedBefore = this.#clock.now() - this.#policy.archiveUs
    if (!(await this.#isAnyArchived(queue, archivedBefore))) return nothing
    return runBatches(batchesMax, signal, async () => {
      const audit = createAuditContext(this.#clock, policyAttribution, 'letters.purge-archive', {
        archivedBefore,
        batchSize,
      })
      const command = { op: 'purge-archive', queue, archivedBefore, countMax: batchSize, audit } as const
      const [, , { purged, isMore }] = await this.#engine.write([
        { op: 'fence', lock },
        this.#renew(lock),
        command,
      ])
      return { count: purged, isMore }
    })
  }

  async #work(
    lock: HeldLock,
    bounds: Bounds,
    onDone?: RetentionOptions['onDone'],
  ): Promise<Readonly<{ done: readonly RetentionDone[]; isMore: boolean }>> {
    const done: RetentionDone[] = []
    let isMore = false
    for (const { queue, states } of await this.#listCandidates()) {
      if (bounds.signal?.aborted) break
      const archived = await this.#archiveQueue(queue, states, lock, bounds)
      const purged = await this.#purgeQueue(queue, lock, bounds)
      isMore ||= archived.isMore || purged.isMore
      if (archived.count + purged.count === 0) continue
      const here = { queue, archived: archived.count, purged: purged.count }
      this.#log.info(here, 'retention moved letters')
      done.push(here)
      onDone?.(here)
    }
    return { done, isMore }
  }
}

type Bounds = Readonly<{ batchSize: number; batchesMax: number; signal?: AbortSignal }>
type Moved = Readonly<{ count: number; isMore: boolean }>
const nothing: Moved = { count: 0, isMore: false }

async function runBatches(
  batchesMax: number,
  signal: AbortSignal | undefined,
  batch: () => Promise<Moved>,
): Promise<Moved> {
  let count = 0
  for (let batches = 1; ; batches++) {
    const { count: moved, isMore } = await batch()
    count += moved
    if (!isMore || batches >= batchesMax || signal?.aborted) return { count, isMore }
  }
}

/**
 * Retention: ended letters move to the archive after `keepUs`, and are purged from it after `archiveUs`.
 * Waiting letters and redrives in progress are never touched. In a dead queue of class `financial`, DEAD
 * letters stay, too: only a person removes them.
 *
 * One server works at a time, in batches of one transaction each, limited by number and bytes. A batch
 * deletes exactly the rows that it archives, by the class that the queue has in that transaction.
 */
import { type Clock, type Instant, later, usPerSecond } from '../core/instant.ts'
import { archivedStates, type EndedState } from '../core/letter-class.ts'
import type { Engine } from '../engine/engine.ts'
import { KnownError } from '../errors.ts'
import type { LetterCursor } from '../storage/contract/letters.ts'
import type { HeldLock } from '../storage/contract/locks.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { actOf, policyTrace } from './audit.ts'
import type { RetentionDone, RetentionOptions } from './letters.ts'
import type { LettersLog, RetentionPolicy } from './parts.ts'

export interface Retention {
  /** One batch per queue; true if more is left. Does nothing while another server runs retention. */
  pass(): Promise<boolean>
  run(options: RetentionOptions): Promise<readonly RetentionDone[]>
  /** Counts what a run would do now. Changes nothing. */
  preview(): Promise<readonly RetentionDone[]>
}

const dayUs = 24 * 3_600 * usPerSecond
export const defaultRetention: RetentionPolicy = { keepUs: 30 * dayUs, archiveUs: 365 * dayUs }

const batchSizeDefault = 1_000
export const retentionBatchMax = 10_000
const lockName = 'letters/retention'
const lockUs = 60 * usPerSecond

export function createRetention(
  parts: Readonly<{
    storage: StoreReads
    engine: Pick<Engine, 'write'>
    clock: Clock
    owner: string
    policy: RetentionPolicy
    log: LettersLog
  }>,
): Retention {
  const { storage, engine, clock, owner, policy, log } = parts

  const acquire = async (): Promise<HeldLock | null> => {
    const now = clock.now()
    const deadline = later(now, lockUs)
    const [lock] = await engine.write([{ op: 'acquire-lock', name: lockName, owner, now, deadline }])
    return lock
  }
  const release = async (lock: HeldLock): Promise<void> => {
    await engine.write([{ op: 'release-lock', lock }])
  }
  const renew = (lock: HeldLock) =>
    ({ op: 'renew-lock', lock, deadline: later(clock.now(), lockUs) }) as const

  /**
   * Queues with ended letters or with archived letters. `states`: which states to look at. Each batch decides
   * again what to move, because the class of the queue may have changed.
   */
  const listCandidates = async (): Promise<
    readonly Readonly<{ queue: string; states: readonly EndedState[] }>[]
  > => {
    const [ended, counts] = await Promise.all([
      storage.countLetters({ filter: { states: ['done', 'dead', 'discarded'] }, by: ['queue'] }),
      storage.counts({}),
    ])
    const names = new Set(ended.flatMap(({ queue }) => queue ?? []))
    for (const { queue, archived } of counts) if (archived > 0) names.add(queue)
    const found: { queue: string; states: readonly EndedState[] }[] = []
    for (const name of [...names].sort()) {
      const queue = await storage.getQueue(name)
      if (queue !== null) found.push({ queue: name, states: archivedStates(queue.letterClass) })
    }
    return found
  }

  const listEnded = (
    queue: string,
    states: readonly EndedState[],
    endedBefore: number,
    countMax: number,
    after?: LetterCursor,
  ) =>
    storage.listLetters({
      filter: { queues: [queue], states, updated: { until: endedBefore - 1 } },
      order: 'updatedAt',
      isDescending: false,
      ...(after !== undefined && { after }),
      countMax,
      lookMax: batchSizeDefault,
      bytes: 'none',
    })
  const listArchived = (
    queue: string,
    after: Readonly<{ archivedAt: Instant; id: string }>,
    countMax: number,
  ) => storage.listArchivedLetters({ queues: [queue], after, countMax })

  /** Checked first, because most passes have nothing to move and then need no write. */
  const isAnyEnded = async (
    queue: string,
    states: readonly EndedState[],
    endedBefore: number,
  ): Promise<boolean> => (await listEnded(queue, states, endedBefore, 1)).letters.length > 0
  const isAnyArchived = async (queue: string, archivedBefore: number): Promise<boolean> =>
    (await listArchived(queue, { archivedAt: archivedBefore, id: '' }, 1)).length > 0

  const countEnded = async (queue: string, states: readonly EndedState[]): Promise<number> => {
    const endedBefore = clock.now() - policy.keepUs
    let count = 0
    for (let after: LetterCursor | null | undefined; after !== null; ) {
      const page = await listEnded(queue, states, endedBefore, batchSizeDefault, after)
      count += page.letters.length
      after = page.next
    }
    return count
  }
  const countArchived = async (queue: string): Promise<number> => {
    let after = { archivedAt: clock.now() - policy.archiveUs, id: '' }
    for (let count = 0; ; ) {
      const page = await listArchived(queue, after, batchSizeDefault)
      count += page.length
      const last = page.at(-1)
      if (page.length < batchSizeDefault || last === undefined) return count
      after = { archivedAt: last.archivedAt, id: last.item.id }
    }
  }

  const archiveQueue = async (
    queue: string,
    states: readonly EndedState[],
    lock: HeldLock,
    { batchSize, batchesMax, signal }: Bounds,
  ): Promise<Moved> => {
    const now = clock.now()
    const endedBefore = now - policy.keepUs
    if (!(await isAnyEnded(queue, states, endedBefore))) return nothing
    return runBatches(batchesMax, signal, async () => {
      const trace = actOf(clock, policyTrace, 'letters.archive', { endedBefore, batchSize })
      const due = { endedBefore, countMax: batchSize, now, trace }
      const command = { op: 'archive', queue, states: 'by-class', ...due } as const
      const [, , { archived, isMore }] = await engine.write([{ op: 'fence', lock }, renew(lock), command])
      return { count: archived, isMore }
    })
  }

  const purgeQueue = async (
    queue: string,
    lock: HeldLock,
    { batchSize, batchesMax, signal }: Bounds,
  ): Promise<Moved> => {
    const archivedBefore = clock.now() - policy.archiveUs
    if (!(await isAnyArchived(queue, archivedBefore))) return nothing
    return runBatches(batchesMax, signal, async () => {
      const trace = actOf(clock, policyTrace, 'letters.purge-archive', { archivedBefore, batchSize })
      const command = { op: 'purge-archive', queue, archivedBefore, countMax: batchSize, trace } as const
      const [, , { purged, isMore }] = await engine.write([{ op: 'fence', lock }, renew(lock), command])
      return { count: purged, isMore }
    })
  }

  const work = async (
    lock: HeldLock,
    bounds: Bounds,
    onDone?: RetentionOptions['onDone'],
  ): Promise<Readonly<{ done: readonly RetentionDone[]; isMore: boolean }>> => {
    const done: RetentionDone[] = []
    let isMore = false
    for (const { queue, states } of await listCandidates()) {
      if (bounds.signal?.aborted) break
      const archived = await archiveQueue(queue, states, lock, bounds)
      const purged = await purgeQueue(queue, lock, bounds)
      isMore ||= archived.isMore || purged.isMore
      if (archived.count + purged.count === 0) continue
      const here = { queue, archived: archived.count, purged: purged.count }
      log.info(here, 'retention moved letters')
      done.push(here)
      onDone?.(here)
    }
    return { done, isMore }
  }

  return {
    preview: async () => {
      const found: RetentionDone[] = []
      for (const { queue, states } of await listCandidates()) {
        const here = {
          queue,
          archived: await countEnded(queue, states),
          purged: await countArchived(queue),
        }
        if (here.archived + here.purged > 0) found.push(here)
      }
      return found
    },
    pass: async () => {
      const lock = await acquire()
      if (lock === null) return false
      try {
        return (await work(lock, { batchSize: batchSizeDefault, batchesMax: 1 })).isMore
      } finally {
        await release(lock)
      }
    },
    run: async ({ batchSize, signal, onDone }) => {
      if (!Number.isInteger(batchSize) || batchSize < 1 || batchSize > retentionBatchMax) {
        throw new KnownError(
          'BAD_REQUEST',
          `the batch size is ${batchSize}; it must be a whole number from 1 to ${retentionBatchMax}`,
        )
      }
      const lock = await acquire()
      if (lock === null)
        throw new KnownError('RETENTION_BUSY', 'retention is already running on another server')
      try {
        const bounds = { batchSize, batchesMax: Number.POSITIVE_INFINITY, ...(signal && { signal }) }
        return (await work(lock, bounds, onDone)).done
      } finally {
        await release(lock)
      }
    },
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

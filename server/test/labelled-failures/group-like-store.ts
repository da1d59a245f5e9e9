/** Forms groups of failures with the functions that the stores use, in the order in which they arrive. */
import { type Cause, toCause } from '../../src/core/dead-letters/cause.ts'
import { GroupIndex, type IndexedGroup } from '../../src/core/grouping/group-index.ts'
import { planGroups } from '../../src/core/grouping/plan-groups.ts'
import type { LabelledFailure } from './cause.ts'

/**
 * As a store does: the group of the cause, or the one that the miner chooses among the groups of the queue. A
 * group that becomes part of another one is counted with that one.
 */
export function groupLikeStore(failures: readonly LabelledFailure[]): number[] {
  const queues = new Map<string, GroupIndex>()
  const roots = new Map<number, number>()
  let count = 0
  const ids = failures.map((each) => {
    const index = queues.get(each.queue) ?? new GroupIndex()
    queues.set(each.queue, index)
    const cause = toFailureCause(each)
    const known = index.find(cause.fingerprint)
    if (known !== undefined) return known
    const match = index.match(cause)
    if (match.kind === 'create') {
      const id = ++count
      index.add({ ...cause, id })
      return id
    }
    if (match.kind === 'widen') {
      index.widen(cause, match)
      for (const id of match.merged) roots.set(id, match.id)
    }
    return match.id
  })
  return ids.map((id) => findRoot(roots, id))
}

/** As a store that receives `batchSize` failures in one transaction. */
export function groupInBatches(failures: readonly LabelledFailure[], batchSize: number): number[] {
  const queues = new Map<string, BatchQueue>()
  const ids = { count: 0 }
  const found: (() => number)[] = []
  for (let start = 0; start < failures.length; start += batchSize) {
    const batch = failures.slice(start, start + batchSize)
    for (const [name, inQueue] of Map.groupBy(batch, ({ queue }) => queue)) {
      const queue = queues.get(name) ?? new BatchQueue(ids)
      queues.set(name, queue)
      queue.add(inQueue.map(toFailureCause))
    }
    for (const each of batch) {
      const { fingerprint } = toFailureCause(each)
      found.push(() => queues.get(each.queue)?.find(fingerprint) ?? 0)
    }
  }
  return found.map((find) => find())
}

/** The groups of one queue. */
class BatchQueue {
  readonly #ids: { count: number }
  #groups: IndexedGroup[] = []
  readonly #known = new Map<string, number>()
  readonly #roots = new Map<number, number>()

  constructor(ids: { count: number }) {
    this.#ids = ids
  }

  add(causes: readonly Cause[]): void {
    const wanted = new Map(causes.map((cause) => [cause.fingerprint, cause]))
    for (const fingerprint of this.#known.keys()) wanted.delete(fingerprint)
    const plan = planGroups(
      [...wanted].map(([key, cause]) => ({ key, cause })),
      this.#groups,
    )
    for (const { key, cause } of plan.created) {
      this.#groups.push({ ...cause, id: ++this.#ids.count })
      this.#known.set(key, this.#ids.count)
    }
    for (const [key, id] of plan.joined) this.#known.set(key, id)
    for (const [key, other] of plan.shared) this.#known.set(key, this.#known.get(other) ?? 0)
    for (const [id, root] of plan.merged) this.#roots.set(id, root)
    this.#groups = this.#groups
      .filter(({ id }) => !this.#roots.has(id))
      .map((group) => ({ ...group, ...plan.widened.get(group.id) }))
  }

  find(fingerprint: string): number {
    return findRoot(this.#roots, this.#known.get(fingerprint) ?? 0)
  }
}

export function toFailureCause({ queue, errorClass, message, stack }: LabelledFailure): Cause {
  const unknown = { attempts: 1, firstFailedAt: 0, lastFailedAt: 0, worker: '' }
  return toCause({ errorCode: '', errorClass, message, stack, ...unknown }, { name: queue })
}

function findRoot(roots: ReadonlyMap<number, number>, id: number): number {
  const root = roots.get(id)
  return root === undefined ? id : findRoot(roots, root)
}

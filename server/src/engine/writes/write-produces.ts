import type { QueueName } from '../../core/ids/ids.ts'
import type { Queue } from '../../core/items/queue.ts'
import { addDuration, type Instant } from '../../core/time/instant.ts'
import type { NewItem, ProduceResult } from '../../storage/contract/items.ts'
import type { ProducedItems, ProduceOptions } from '../engine.ts'
import type { AvailableCounts } from '../leases/available-counts.ts'
import type { QueueRuntimeParts } from '../queues/queue-runtime-parts.ts'
import { runWhenOutcomeUnknown } from '../timing/deadline.ts'
import type { Request } from './call-lane.ts'
import { handleRejectedBatch } from './rejected-batch.ts'

export type ProduceRequest = Request<ProducedItems> &
  Readonly<{ items: readonly NewItem[]; partition: number | undefined; once: ProduceOptions['once'] }>

/** Writes a batch of produce requests. Calls `onReady` if some of the items can be leased now. */
export async function writeProduces(
  batch: readonly ProduceRequest[],
  queue: Queue,
  counts: AvailableCounts,
  parts: QueueRuntimeParts,
  onReady: () => void,
): Promise<void> {
  const now = parts.clock.now()
  const placed = batch.map((request) => {
    const partition = request.partition ?? counts.chooseLeastLoadedPartition()
    counts.addInFlight(partition, request.items.length)
    return { request, partition }
  })
  const groups = groupByPartition(placed)
  const late = runWhenOutcomeUnknown(parts.batchMsMax, (error) => {
    for (const { reject } of batch) reject(error)
  })
  try {
    const results = await parts.writer.write(groups.map((group) => toCommand(group, queue.name, now)))
    let isReady = false
    for (const [index, { requests }] of groups.entries()) {
      const result = results[index] as ProduceResult
      const ready = result.isRepeat ? 0 : countReady(requests, queue, now, parts)
      if (ready > 0) {
        counts.add(result.partition, ready)
        isReady = true
      }
      resolveEach(requests, result)
    }
    if (isReady) onReady()
  } catch (error) {
    const writeOne = (request: ProduceRequest) => writeProduces([request], queue, counts, parts, onReady)
    await handleRejectedBatch(batch, error, parts, writeOne)
  } finally {
    late.cancel()
    for (const { partition, request } of placed) counts.addInFlight(partition, -request.items.length)
  }
}

type Group = { partition: number; once: ProduceOptions['once']; requests: ProduceRequest[] }

/** Requests for one partition become one command, in order. A request with a key has its own. */
function groupByPartition(
  placed: readonly Readonly<{ request: ProduceRequest; partition: number }>[],
): Group[] {
  const groups: Group[] = []
  const open = new Map<number, Group>()
  for (const { request, partition } of placed) {
    const { once } = request
    const existing = once === undefined ? open.get(partition) : undefined
    if (existing !== undefined) {
      existing.requests.push(request)
      continue
    }
    const group: Group = { partition, once, requests: [request] }
    groups.push(group)
    // Requests that arrived after one with a key are written after it.
    if (once === undefined) open.set(partition, group)
    else open.delete(partition)
  }
  return groups
}

function toCommand({ partition, requests, once }: Group, queue: QueueName, now: Instant) {
  const [first] = requests as [ProduceRequest]
  return {
    op: 'produce' as const,
    queue,
    partition,
    items: requests.length === 1 ? first.items : requests.flatMap(({ items }) => items),
    now,
    ...(once !== undefined && { once: { key: once.key, until: addDuration(now, once.windowUs) } }),
  }
}

/** Counts the items that can be leased now, and reports when the items will be due. */
function countReady(
  requests: readonly ProduceRequest[],
  queue: Queue,
  now: Instant,
  { onDue }: QueueRuntimeParts,
): number {
  let ready = 0
  for (const { items } of requests) {
    for (const item of items) {
      if (item.availableAt != null) onDue(item.availableAt)
      else if (item.lease === undefined) ready++
      if (item.expireDeadline !== undefined) onDue(item.expireDeadline)
    }
  }
  if (ready > 0) onDue(addDuration(now, queue.expireTimeoutUs))
  return ready
}

function resolveEach(requests: readonly ProduceRequest[], result: ProduceResult): void {
  const { ids, partition, isRepeat } = result
  let from = 0
  for (const { items, resolve } of requests) {
    const own = requests.length === 1 ? ids : ids.slice(from, from + items.length)
    from += items.length
    resolve({ partition, ids: own, isRepeat })
  }
}

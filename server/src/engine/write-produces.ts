/** Requests to produce into one queue: where their items go, and how a batch of them is written. */
import { type Instant, later } from '../core/instant.ts'
import type { Queue } from '../core/queue.ts'
import type { NewItem, ProduceResult } from '../storage/contract/items.ts'
import type { Stock } from './available-counts.ts'
import type { Request } from './call-lane.ts'
import type { ProducedItems, ProduceOptions } from './engine.ts'
import type { RoomParts } from './queue-runtime-parts.ts'
import { oneByOne, whenUnknown } from './rejected-batch.ts'

export type Producing = Request<ProducedItems> &
  Readonly<{ items: readonly NewItem[]; partition: number | undefined; once: ProduceOptions['once'] }>

/** `onReady`: some of what was written can be leased now. */
export async function writeProduces(
  batch: readonly Producing[],
  queue: Queue,
  stock: Stock,
  parts: RoomParts,
  onReady: () => void,
): Promise<void> {
  const now = parts.clock.now()
  const placed = batch.map((request) => {
    const partition = request.partition ?? stock.emptiest()
    stock.place(partition, request.items.length)
    return { request, partition }
  })
  const groups = groupsOf(placed)
  const late = whenUnknown(parts.batchMsMax, (error) => {
    for (const { reject } of batch) reject(error)
  })
  try {
    const results = await parts.writer.write(
      groups.map(({ partition, requests, once }) => ({
        op: 'produce' as const,
        queue: queue.name,
        partition,
        items:
          requests.length === 1 ? (requests[0] as Producing).items : requests.flatMap(({ items }) => items),
        now,
        ...(once !== undefined && { once: { key: once.key, until: later(now, once.windowUs) } }),
      })),
    )
    let isReady = false
    for (const [index, { requests }] of groups.entries()) {
      const { ids, partition, isRepeat } = results[index] as ProduceResult
      let at = 0
      for (const request of requests) {
        const own = requests.length === 1 ? ids : ids.slice(at, at + request.items.length)
        at += request.items.length
        const ready = isRepeat ? 0 : expectOf(request.items, queue, now, parts)
        if (ready > 0) {
          stock.gain(partition, ready)
          isReady = true
        }
        request.resolve({ partition, ids: own, isRepeat })
      }
    }
    if (isReady) onReady()
  } catch (error) {
    await oneByOne(batch, error, parts, (one) => writeProduces([one], queue, stock, parts, onReady))
  } finally {
    late.off()
    for (const { partition, request } of placed) stock.place(partition, -request.items.length)
  }
}

/** Says when something will be due with them; gives how many can be leased now. */
function expectOf(items: readonly NewItem[], queue: Queue, now: Instant, { onDue }: RoomParts): number {
  let ready = 0
  for (const item of items) {
    if (item.availableAt != null) onDue(item.availableAt)
    else if (item.lease === undefined) ready++
    if (item.expireDeadline !== undefined) onDue(item.expireDeadline)
  }
  if (ready > 0) onDue(later(now, queue.expireUs))
  return ready
}

type Group = { partition: number; once: ProduceOptions['once']; requests: Producing[] }

/** Requests for one partition become one command, in order; one with a key stays by itself. */
function groupsOf(placed: readonly Readonly<{ request: Producing; partition: number }>[]): Group[] {
  const groups: Group[] = []
  const open = new Map<number, Group>()
  for (const { request, partition } of placed) {
    const { once } = request
    const group = once === undefined ? open.get(partition) : undefined
    if (group !== undefined) {
      group.requests.push(request)
      continue
    }
    const made: Group = { partition, once, requests: [request] }
    groups.push(made)
    // What comes after a keyed request stays after it.
    if (once === undefined) open.set(partition, made)
    else open.delete(partition)
  }
  return groups
}

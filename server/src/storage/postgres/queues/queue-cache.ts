import type { Queue } from '../../../core/items/queue.ts'
import { createPartitionNotFoundError, createQueueNotFoundError } from '../../shared/items/queue-checks.ts'
import { toQueue } from '../../shared/items/queue-row.ts'
import { readBoolean, readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Row } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'

/**
 * A queue with its row id. `version` changes with every change of the row. `isLetterStore`: the queue has or
 * had rows in `items_sourced`.
 */
export type QueueRow = Readonly<{ id: number; version: number; isLetterStore: boolean; queue: Queue }>

/** How long a queue counts as a queue with redrives after the last one was completed. */
const redrivesRecentMs = 2_000

/**
 * The queues that this server has read, so that most writes need not read them. Other servers can change a
 * queue at any time, so every statement that uses a cached queue also checks its version, and changes nothing
 * if the version differs.
 */
export class QueueCache {
  readonly #byName = new Map<string, QueueRow>()
  readonly #lastIds = new Map<string, string>()
  readonly #redrivesUntilMs = new Map<number, number>()

  async get(connections: Connections, name: string): Promise<QueueRow> {
    const queueRow = this.#byName.get(name)
    if (queueRow !== undefined) return queueRow
    const [row] = await connections.read(
      { name: 'get-queue', text: 'select * from redrive.queues where name = $1' },
      [name],
    )
    if (row === undefined) throw createQueueNotFoundError(name)
    return this.put(row)
  }

  /** The queue of each command. Refuses a partition that its queue does not have. */
  async getForEach<C extends Readonly<{ queue: string; partition: number }>>(
    connections: Connections,
    commands: readonly C[],
  ): Promise<Readonly<{ command: C; queueRow: QueueRow }>[]> {
    const found: Readonly<{ command: C; queueRow: QueueRow }>[] = []
    for (const command of commands) {
      const queueRow = this.#byName.get(command.queue) ?? (await this.get(connections, command.queue))
      checkPartition(queueRow.queue, command.partition)
      found.push({ command, queueRow })
    }
    return found
  }

  put(row: Row): QueueRow {
    const before = this.#byName.get(readText(row, 'name'))
    if (before !== undefined && before.id === row.id && before.version === row.version) return before
    const queueRow = toQueueRow(row)
    this.#byName.set(queueRow.queue.name, queueRow)
    return queueRow
  }

  invalidate(name: string): void {
    this.#byName.delete(name)
  }

  /** Records that redrives were completed in the queue, so that more of them are expected for a while. */
  recordRedrives(queueId: number): void {
    this.#redrivesUntilMs.set(queueId, performance.now() + redrivesRecentMs)
  }

  /** Whether redrives were completed in the queue recently. */
  hasRedrives(queueId: number): boolean {
    const untilMs = this.#redrivesUntilMs.get(queueId)
    if (untilMs === undefined) return false
    if (untilMs > performance.now()) return true
    this.#redrivesUntilMs.delete(queueId)
    return false
  }

  /** The newest id that this server has created or read. Other servers may have created newer ones. */
  getLastId(queueRow: QueueRow, partition: number): string | undefined {
    return this.#lastIds.get(`${queueRow.id}/${partition}`)
  }

  setLastId(queueId: number, partition: number, id: string): void {
    const key = `${queueId}/${partition}`
    const before = this.#lastIds.get(key)
    if (before === undefined || before < id) this.#lastIds.set(key, id)
  }
}

/** From a row of the table `queues`. */
export function toQueueRow(row: Row): QueueRow {
  return {
    id: readNumber(row, 'id'),
    version: readNumber(row, 'version'),
    isLetterStore: readBoolean(row, 'is_sourced'),
    queue: toQueue(row),
  }
}

export function checkPartition(queue: Queue, partition: number): void {
  if (!Number.isInteger(partition) || partition < 0 || partition >= queue.partitions) {
    throw createPartitionNotFoundError(queue.name, partition, queue.partitions)
  }
}

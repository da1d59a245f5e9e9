import type { Queue } from '../../../core/queue.ts'
import { partitionNotFound, queueNotFound } from '../../shared/queue-checks.ts'
import { toQueue } from '../../shared/queue-row.ts'
import type { Row } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'

/** `version`: what is said here holds while the row has this version. */
export type QueueRow = Readonly<{ id: number; version: number; isLetterStore: boolean; queue: Queue }>

const redrivenMs = 2_000

/**
 * What this server remembers of queues, so that most writes need not ask. Others may change a queue at
 * any time: every statement that builds on this also checks the version, and does nothing if it differs.
 */
export class QueueCache {
  readonly #byName = new Map<string, QueueRow>()
  readonly #lastIds = new Map<string, string>()
  readonly #redrivenUntil = new Map<number, number>()

  async get(connections: Connections, name: string): Promise<QueueRow> {
    const queueRow = this.#byName.get(name)
    if (queueRow !== undefined) return queueRow
    const [row] = await connections.read(
      { name: 'get-queue', text: 'select * from redrive.queues where name = $1' },
      [name],
    )
    if (row === undefined) throw queueNotFound(name)
    return this.put(row)
  }

  /** The queue of each command, when it has the partition that the command names. */
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
    const before = this.#byName.get(row.name as string)
    if (before !== undefined && before.id === row.id && before.version === row.version) return before
    const queueRow = toQueueRow(row)
    this.#byName.set(queueRow.queue.name, queueRow)
    return queueRow
  }

  invalidate(name: string): void {
    this.#byName.delete(name)
  }

  /** Redrives were completed in it: for a moment it is not expected that the next items are ordinary ones. */
  recordRedrives(queueId: number): void {
    this.#redrivenUntil.set(queueId, performance.now() + redrivenMs)
  }

  hasRedrives(queueId: number): boolean {
    const until = this.#redrivenUntil.get(queueId)
    if (until === undefined) return false
    if (until > performance.now()) return true
    this.#redrivenUntil.delete(queueId)
    return false
  }

  /** The newest id that this server knows of; others may have made newer ones. */
  getLastId(queueRow: QueueRow, partition: number): string | undefined {
    return this.#lastIds.get(`${queueRow.id}/${partition}`)
  }

  setLastId(queueId: number, partition: number, id: string): void {
    const key = `${queueId}/${partition}`
    const before = this.#lastIds.get(key)
    if (before === undefined || before < id) this.#lastIds.set(key, id)
  }
}

export function toQueueRow(row: Row): QueueRow {
  return {
    id: row.id as number,
    version: row.version as number,
    isLetterStore: row.is_sourced as boolean,
    queue: toQueue(row),
  }
}

export function checkPartition(queue: Queue, partition: number): void {
  if (!Number.isInteger(partition) || partition < 0 || partition >= queue.partitions) {
    throw partitionNotFound(queue.name, partition, queue.partitions)
  }
}

import type { Consumer } from '@platformatic/kafka'
import { type ClaimedPartition, partitionKey } from './claimed-partition.ts'

/**
 * Commits offsets to Kafka after their records are stored. One commit is in progress at a time, and the next
 * one has the newest offset of each partition. A commit that fails is not repeated: the next one replaces it,
 * and the position in the store decides where reading continues.
 */
export class OffsetCommitter {
  readonly #consumer: Pick<Consumer, 'commit'>
  readonly #pending = new Map<string, Readonly<{ claimed: ClaimedPartition; offset: number }>>()
  #committing: Promise<void> | undefined

  constructor(consumer: Pick<Consumer, 'commit'>) {
    this.#consumer = consumer
  }

  add(claimed: ClaimedPartition, offset: number): void {
    this.#pending.set(partitionKey(claimed), { claimed, offset })
    this.#committing ??= this.#run().finally(() => {
      this.#committing = undefined
    })
  }

  /** Resolves when the last commit has ended, or did not end in time. */
  async close(): Promise<void> {
    await this.#committing
  }

  async #run(): Promise<void> {
    while (this.#pending.size > 0) {
      const pending = [...this.#pending.values()].filter(({ claimed }) => claimed.isCurrent)
      this.#pending.clear()
      if (pending.length === 0) return
      const offsets = pending.map(({ claimed: { topic, partition }, offset }) => ({
        topic,
        partition,
        offset: BigInt(offset),
        leaderEpoch: -1,
      }))
      await this.#consumer.commit({ offsets }).catch(() => {})
    }
  }
}

/**
 * Finds the records that count in the answer to a fetch: neither markers of transactions nor records of
 * aborted ones. Brokers send aborted records too, and name their transactions beside them. The filter of the
 * Kafka client misses a transaction that ends behind the answer, and all but the last of several of one
 * producer.
 */
type Batch = Readonly<{
  attributes: number
  producerId: bigint
  firstOffset: bigint
  lastOffsetDelta: number
  records: readonly Readonly<{ key: Buffer | null }>[]
}>
type Aborted = Readonly<{ producerId: bigint; firstOffset: bigint }>

const isTransactionalBit = 0x10
/** Batches with this bit are transaction markers, not records. */
const isControlBit = 0x20
/** The type in the key of a marker, behind its version. */
const abortType = 0

export class TransactionFilter {
  /** The aborted transactions that start behind the last batch, by their first offset. */
  readonly #ahead: Aborted[]
  /** The producers whose records are aborted here. */
  readonly #producers = new Set<bigint>()

  constructor(aborted: readonly Aborted[] | null | undefined) {
    this.#ahead = (aborted ?? []).toSorted((a, b) => Number(a.firstOffset - b.firstOffset))
  }

  /** Whether the records of a batch count. Has to be asked for all batches of the answer, in their order. */
  keeps(batch: Batch): boolean {
    const isControl = (batch.attributes & isControlBit) !== 0
    if (this.#ahead.length === 0 && this.#producers.size === 0) return !isControl
    const last = batch.firstOffset + BigInt(batch.lastOffsetDelta)
    while (this.#ahead[0] !== undefined && this.#ahead[0].firstOffset <= last)
      this.#producers.add((this.#ahead.shift() as Aborted).producerId)
    const isAborted = this.#producers.has(batch.producerId)
    if (!isControl) return !isAborted || (batch.attributes & isTransactionalBit) === 0
    if (batch.records[0]?.key?.readInt16BE(2) === abortType) this.#producers.delete(batch.producerId)
    return false
  }
}

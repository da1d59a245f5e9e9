/**
 * Commits offsets with their metadata. One commit is in progress at a time, and the next one has the newest
 * progress of every partition.
 *
 * Commits have a connection of their own: a rebalance blocks the connection of the consumer until all members
 * have joined, and records that are finished in that time have to be committed before it ends. Each commit
 * names the generation in which the partitions were assigned, so Kafka refuses it if another worker has them.
 */
import { type Admin, type Connection, offsetCommitV8 } from '@platformatic/kafka'
import { type Progress, toMetadata } from '../partitions/progress-metadata.ts'
import { groupByTopic } from '../timing.ts'

export type Membership = Readonly<{ memberId: string; generationId: number }>

/** A partition that this worker has, until another worker gets it. */
export type Claim = {
  readonly topic: string
  readonly partition: number
  isCurrent: boolean
}

export type CommitterParts = Readonly<{
  admin: Pick<Admin, 'connectToBrokers'>
  group: string
  coordinatorId(): Promise<number>
  membership(): Membership | null
  onError(error: unknown): void
}>

/** Progress that nobody waits for is collected for this time. */
const lingerMs = 25
const retryMs = 200

type Pending = { progress: Progress; waiting: ((isCommitted: boolean) => void)[] }

export class OffsetCommitter {
  readonly #parts: CommitterParts
  readonly #pending = new Map<Claim, Pending>()
  #running: Promise<void> | undefined
  #wake: () => void = () => {}
  #isUrgent = false

  constructor(parts: CommitterParts) {
    this.#parts = parts
  }

  /** Commits soon. A later progress of the partition replaces this one. */
  add(claim: Claim, progress: Progress): void {
    const pending = this.#pending.get(claim)
    if (pending !== undefined) pending.progress = progress
    else this.#pending.set(claim, { progress, waiting: [] })
    this.#start()
  }

  /** Resolves when Kafka has the progress, with false if the partition belongs to another worker. */
  commit(claim: Claim, progress: Progress): Promise<boolean> {
    if (!claim.isCurrent) return Promise.resolve(false)
    return new Promise((resolve) => {
      this.add(claim, progress)
      this.#pending.get(claim)?.waiting.push(resolve)
      this.#isUrgent = true
      this.#wake()
    })
  }

  /** Resolves when everything that was added is committed, or its partition is lost. */
  async flush(): Promise<void> {
    this.#isUrgent = true
    this.#wake()
    await this.#running
  }

  /** Another worker has the partition, or will have it: what is not committed now is dropped. */
  drop(claim: Claim): void {
    claim.isCurrent = false
    const pending = this.#pending.get(claim)
    this.#pending.delete(claim)
    for (const resolve of pending?.waiting ?? []) resolve(false)
  }

  #start(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
      if (this.#pending.size > 0) this.#start()
    })
  }

  async #run(): Promise<void> {
    while (this.#pending.size > 0) {
      if (!this.#isUrgent) await this.#linger()
      this.#isUrgent = false
      const batch = [...this.#pending].filter(([claim]) => claim.isCurrent)
      this.#pending.clear()
      const isCommitted = batch.length === 0 || (await this.#send(batch))
      for (const entry of batch) {
        if (isCommitted) for (const resolve of entry[1].waiting) resolve(entry[0].isCurrent)
        else this.#putBack(entry)
      }
      if (!isCommitted) await new Promise((resolve) => setTimeout(resolve, retryMs))
    }
  }

  /** A newer progress includes the one that was not committed. */
  #putBack([claim, { progress, waiting }]: readonly [Claim, Pending]): void {
    const newer = this.#pending.get(claim)
    if (!claim.isCurrent) for (const resolve of waiting) resolve(false)
    else if (newer === undefined) this.#pending.set(claim, { progress, waiting })
    else newer.waiting.push(...waiting)
  }

  async #linger(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, lingerMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = () => {}
  }

  /** False: the commit is tried again, because the partitions may still belong to this worker. */
  async #send(batch: readonly (readonly [Claim, Pending])[]): Promise<boolean> {
    const membership = this.#parts.membership()
    if (membership === null) return false
    try {
      await this.#request(batch, membership)
      return true
    } catch (error) {
      // During a rebalance Kafka refuses commits. After it, the partition is lost or the generation is new.
      if (!isRefused(error)) this.#parts.onError(error)
      return false
    }
  }

  async #request(batch: readonly (readonly [Claim, Pending])[], membership: Membership): Promise<void> {
    const coordinatorId = await this.#parts.coordinatorId()
    const connection = (await this.#parts.admin.connectToBrokers([coordinatorId])).get(coordinatorId)
    if (connection === undefined) throw new Error(`there is no connection to broker ${coordinatorId}`)
    const byTopic = groupByTopic(batch, ([{ topic }]) => topic)
    const topics = [...byTopic].map(([name, own]) => ({
      name,
      partitions: own.map(([{ partition }, { progress }]) => ({
        partitionIndex: partition,
        committedOffset: BigInt(progress.offset),
        committedLeaderEpoch: -1,
        committedMetadata: toMetadata(progress),
      })),
    }))
    await sendCommit(connection, this.#parts.group, membership, topics)
  }
}

type CommitTopics = Parameters<typeof offsetCommitV8.createRequest>[4]

function sendCommit(
  connection: Connection,
  group: string,
  { generationId, memberId }: Membership,
  topics: CommitTopics,
): Promise<void> {
  return new Promise((resolve, reject) => {
    offsetCommitV8.api(connection, group, generationId, memberId, null, topics, (error) => {
      if (error) reject(error)
      else resolve()
    })
  })
}

const refusals: ReadonlySet<string> = new Set([
  'ILLEGAL_GENERATION',
  'UNKNOWN_MEMBER_ID',
  'REBALANCE_IN_PROGRESS',
  'FENCED_INSTANCE_ID',
  'STALE_MEMBER_EPOCH',
])

function isRefused(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { apiId, errors = [], cause } = error as Error & { apiId?: unknown; errors?: unknown[] }
  if (typeof apiId === 'string' && refusals.has(apiId)) return true
  return errors.some(isRefused) || isRefused(cause)
}

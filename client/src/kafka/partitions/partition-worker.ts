/**
 * Processes the records of one partition in their order, for as long as the partition belongs to this worker.
 *
 * **Offsets.** The committed offset passes a record only after the record was processed, its dead letter was
 * acknowledged, or Redrive has stored it. A record whose processing is in doubt is therefore read again.
 *
 * **Attempts.** After a failure the attempts are committed beside the offset, and before each retry, too. The
 * first attempt is not written, which keeps records that succeed fast. Instead the partition is marked as
 * running. A worker that finds this mark knows that its predecessor crashed, and writes the first attempt of
 * the next `windowMax` records as well: a record that crashes its worker is then counted like any failure.
 */

import { type KafkaRecord, redriveHeaders } from '../records/kafka-record.ts'
import { resolvesWithin } from '../timing.ts'
import {
  type Attempts,
  abandonAttempt,
  countCrash,
  decideNext,
  type NextStep,
  noAttempts,
  startAttempt,
} from './attempts.ts'
import { ParkedWorker } from './parked-worker.ts'
import { PartitionGate } from './partition-gate.ts'
import type { PartitionParts } from './partition-parts.ts'
import type { Progress } from './progress-metadata.ts'
import { type AttemptOutcome, noteFailure, runAttempt } from './run-attempt.ts'
import { untilDone } from './until-done.ts'

/** Records that are processed beyond the committed offset. */
const windowMax = 2_000
const commitMs = 100
/** A partition that has this many bytes is not fetched. */
const bufferedBytesMax = 4 * 2 ** 20

type Chunk = Readonly<{ records: readonly KafkaRecord[]; until: number; bytes: number }>

export class PartitionWorker {
  readonly #parts: PartitionParts
  readonly #gate = new PartitionGate()
  /** Aborts the signals of handlers. */
  readonly #abort = new AbortController()
  readonly #chunks: Chunk[] = []
  readonly #parked: ParkedWorker | null
  readonly #running: Promise<void>
  #bufferedBytes = 0
  #position: number
  /** Attempts of the record at the position. */
  #current: Readonly<{ offset: number; attempts: Attempts }>
  /** How many more records have their first attempt written. */
  #carefulCount: number
  #isMarked = false
  #sinceCommit = 0
  #committedAtMs = 0
  #committing: Promise<unknown> | undefined
  /** The next record to fetch, for the session. */
  fetchFrom: bigint
  leader = -1
  /** The end of the partition at the last fetch. */
  endOffset: bigint

  constructor(parts: PartitionParts, fetchFrom: number, endOffset: bigint) {
    const { start } = parts
    this.#parts = parts
    this.#position = fetchFrom
    this.fetchFrom = BigInt(fetchFrom)
    this.endOffset = endOffset
    this.#current = { offset: start.offset, attempts: start.attempts }
    this.#carefulCount = start.isRunning ? windowMax : 0
    this.#parked =
      parts.parkedQueue === null
        ? null
        : new ParkedWorker(parts, parts.parkedQueue, this.#gate, this.#abort.signal, () =>
            this.#addProgress(),
          )
    this.#running = this.#run()
  }

  get claim(): PartitionParts['claim'] {
    return this.#parts.claim
  }

  get hasRoom(): boolean {
    return this.#bufferedBytes < bufferedBytesMax && !this.#gate.isEnded
  }

  /** Records that are not processed yet. */
  get lag(): number {
    return Math.max(Number(this.endOffset) - this.#position, 0) + (this.#parked?.size ?? 0)
  }

  add(chunk: Chunk): void {
    if (this.#gate.isEnded) return
    this.#chunks.push(chunk)
    this.#bufferedBytes += chunk.bytes
    this.fetchFrom = BigInt(chunk.until)
    this.#gate.wake()
  }

  /**
   * Lets no handler start. Resolves when none is running and the position is committed, or when the grace is
   * over; then the mark stays, and the next worker knows that a record was in progress.
   */
  async pause(graceMs: number): Promise<void> {
    this.#gate.close()
    const isIdle = await resolvesWithin(this.#gate.waitUntilIdle(), graceMs)
    if (!isIdle || !this.#parts.claim.isCurrent || !this.#isMarked) return
    this.#isMarked = false
    const progress = { ...this.#progress(), isRunning: false }
    await resolvesWithin(
      this.#parts.committer.commit(this.#parts.claim, progress),
      Math.max(graceMs, commitMs),
    )
  }

  resume(): void {
    this.#gate.open()
  }

  /** Another worker gets the partition. */
  lose(): void {
    this.#parts.committer.drop(this.#parts.claim)
    this.abort(
      new Error(`partition ${this.claim.partition} of ${this.claim.topic} belongs to another worker`),
    )
  }

  abort(reason: Error): void {
    this.#gate.end()
    this.#abort.abort(reason)
    this.#chunks.length = 0
    this.#bufferedBytes = 0
  }

  /** Resolves when no handler of the partition is running any more. */
  async ended(): Promise<void> {
    await Promise.all([this.#running, this.#parked?.ended])
  }

  #progress(): Progress {
    const { offset, attempts } = this.#current
    return {
      offset: this.#position,
      isRunning: true,
      hasParked: this.#parked?.hasRecords ?? this.#parts.start.hasParked,
      attempts: offset === this.#position ? attempts : noAttempts,
    }
  }

  #addProgress(): void {
    this.#parts.committer.add(this.claim, { ...this.#progress(), isRunning: this.#isMarked })
  }

  async #run(): Promise<void> {
    if (this.#parked !== null && !(await this.#parked.load())) return
    while (await this.#gate.waitUntilOpen()) {
      const chunk = this.#chunks[0]
      if (chunk === undefined) {
        await this.#gate.waitForChange()
        continue
      }
      if (!this.#isMarked && !(await this.#mark())) continue
      if (!(await this.#process(chunk)) || this.#gate.isEnded) continue
      this.#chunks.shift()
      this.#bufferedBytes -= chunk.bytes
      this.#position = Math.max(this.#position, chunk.until)
      this.#addProgress()
    }
  }

  /** Tells the next worker that records behind the offset may have been started. */
  async #mark(): Promise<boolean> {
    const isCommitted = await this.#parts.committer.commit(this.claim, this.#progress())
    if (!isCommitted || this.#gate.isClosed) return false
    this.#isMarked = true
    return true
  }

  /** False: the gate closed before the end of the chunk, which continues at the position later. */
  async #process({ records }: Chunk): Promise<boolean> {
    let at = findFirst(records, this.#position)
    for (; at < records.length; at++) {
      if (this.#gate.isClosed) return false
      const record = records[at] as KafkaRecord
      const done = this.#isPlain(record) ? this.#processPlain(record) : this.#processOther(record)
      const isDone = typeof done === 'boolean' ? done : await done
      if (!isDone) return false
      this.#position = record.offset + 1
      if (++this.#sinceCommit % 64 === 0 || typeof done !== 'boolean') {
        const waiting = this.#keepWindow()
        if (waiting !== undefined) await waiting
      }
    }
    return true
  }

  /** Commits from time to time, and waits if too many records are processed beyond the committed offset. */
  #keepWindow(): Promise<unknown> | undefined {
    const nowMs = performance.now()
    const isDue = this.#sinceCommit >= windowMax / 2
    if (!isDue && nowMs - this.#committedAtMs < commitMs) return undefined
    if (isDue && this.#committing !== undefined) return this.#committing
    this.#committedAtMs = nowMs
    if (!isDue) {
      this.#addProgress()
      return undefined
    }
    this.#sinceCommit = 0
    this.#committing = this.#parts.committer.commit(this.claim, this.#progress()).then(() => {
      this.#committing = undefined
    })
    return undefined
  }

  #isPlain(record: KafkaRecord): boolean {
    return (
      this.#carefulCount === 0 &&
      record.rawHeaders.length === 0 &&
      record.offset !== this.#current.offset &&
      (this.#parked === null || this.#parked.size === 0)
    )
  }

  /** Without a promise if the handler returns none: most of the time of a fast handler would be waiting. */
  #processPlain(record: KafkaRecord): boolean | Promise<boolean> {
    const { settings, counts, onProcessed } = this.#parts
    try {
      const returned = settings.handler(record, this.#firstContext)
      if (isPromise(returned)) return this.#awaitPlain(record, returned)
      counts.processed++
      onProcessed()
      return true
    } catch (thrown) {
      return this.#continueAfter(record, noteFailure(this.#parts, noAttempts, thrown))
    }
  }

  get #firstContext() {
    this.#context ??= { attempt: 1, group: this.#parts.settings.group, signal: this.#abort.signal }
    return this.#context
  }

  #context: Readonly<{ attempt: number; group: string; signal: AbortSignal }> | undefined

  async #awaitPlain(record: KafkaRecord, returned: PromiseLike<unknown>): Promise<boolean> {
    this.#gate.enter()
    try {
      await returned
      this.#parts.counts.processed++
      this.#parts.onProcessed()
      return true
    } catch (thrown) {
      if (this.#abort.signal.aborted) return false
      return await this.#continueAfter(record, noteFailure(this.#parts, noAttempts, thrown))
    } finally {
      this.#gate.leave()
    }
  }

  async #continueAfter(record: KafkaRecord, failure: AttemptOutcome & { kind: 'failed' }): Promise<boolean> {
    this.#report(record, failure.attempts, failure.thrown)
    if (!(await this.#save(record, failure.attempts))) return false
    return this.#attemptUntilDone(record, failure.attempts, failure.thrown)
  }

  async #processOther(record: KafkaRecord): Promise<boolean> {
    const { settings, counts } = this.#parts
    if (this.#carefulCount > 0) this.#carefulCount--
    const target = record.header(redriveHeaders.targetGroup)
    if (target !== undefined && target !== settings.group) {
      counts.skipped++
      return true
    }
    if (this.#parked?.isStored(record) === true) return true
    if (this.#parked?.isHeld(record) === true) return this.#park(record)
    const { offset, attempts } = this.#current
    const before = offset === record.offset ? attempts : noAttempts
    return this.#attemptUntilDone(record, before, before.error)
  }

  /** False: the partition is lost, or the worker stops or pauses. The record is not done. */
  async #attemptUntilDone(record: KafkaRecord, before: Attempts, error: unknown): Promise<boolean> {
    let attempts = countCrash(before, this.#parts.nowMs())
    let thrown = error
    for (;;) {
      const next = this.#decide(record, attempts)
      if (next.kind === 'dead') return this.#bury(record, attempts, thrown)
      if (next.kind === 'hand-over' && (await this.#handOver(record, attempts, next.untilMs))) return true
      if (next.kind !== 'attempt' && !(await this.#waitUntil(next.untilMs))) return false
      const outcome = await this.#attemptOnce(record, attempts)
      if (typeof outcome === 'boolean') return outcome
      ;({ attempts, thrown } = outcome)
      this.#report(record, attempts, thrown)
      if (!(await this.#save(record, attempts))) return false
    }
  }

  /** True: processed; false: not done, and this worker cannot continue now. */
  async #attemptOnce(
    record: KafkaRecord,
    attempts: Attempts,
  ): Promise<boolean | (AttemptOutcome & { kind: 'failed' })> {
    if (this.#gate.isClosed) return this.#giveUp(record, attempts)
    const started = startAttempt(attempts)
    if (this.#mustSave(started) && !(await this.#save(record, started))) return false
    const outcome = await this.#runAttempt(record, attempts)
    if (outcome.kind === 'processed') return true
    return outcome.kind === 'abandoned' ? this.#giveUp(record, abandonAttempt(attempts)) : outcome
  }

  #mustSave(attempts: Attempts): boolean {
    return attempts.failed > 0 || this.#carefulCount > 0
  }

  #decide(record: KafkaRecord, attempts: Attempts): NextStep {
    const { delaysMs, waitMsMax, redrive } = this.#parts.settings
    const rules = { delaysMs, waitMsMax, canHandOver: redrive !== null }
    return decideNext(attempts, rules, record.letterId !== undefined)
  }

  async #runAttempt(record: KafkaRecord, attempts: Attempts): Promise<AttemptOutcome> {
    this.#gate.enter()
    try {
      return await runAttempt(this.#parts, record, attempts, this.#abort.signal)
    } finally {
      this.#gate.leave()
    }
  }

  #giveUp(record: KafkaRecord, attempts: Attempts): false {
    this.#position = record.offset
    this.#current = { offset: record.offset, attempts }
    return false
  }

  /** Commits the attempts of the record beside its offset. */
  #save(record: KafkaRecord, attempts: Attempts): Promise<boolean> {
    this.#position = record.offset
    this.#current = { offset: record.offset, attempts }
    return this.#parts.committer.commit(this.claim, this.#progress())
  }

  #report(record: KafkaRecord, attempts: Attempts, error: unknown): void {
    const next = this.#decide(record, attempts)
    if (next.kind === 'dead' || next.kind === 'attempt') return
    const { events, nowMs } = this.#parts
    const isHandedOver = next.kind === 'hand-over'
    const delayMs = Math.max(next.untilMs - nowMs(), 0)
    events.onRetry({ record, error, attempt: attempts.failed, delayMs, isHandedOver })
  }

  async #waitUntil(untilMs: number): Promise<boolean> {
    const { nowMs } = this.#parts
    while (!this.#gate.isClosed && nowMs() < untilMs) await this.#gate.waitUntil(untilMs - nowMs())
    return !this.#gate.isClosed
  }

  /** False: Redrive could not store the record before its wait was over, or the partition is lost. */
  async #handOver(record: KafkaRecord, attempts: Attempts, untilMs: number): Promise<boolean> {
    this.#gate.enter()
    try {
      const { parked } = this.#require()
      const entry = parked.create(record, 'retry', attempts, untilMs)
      // First say that Redrive has records: a worker that takes over after a crash has to look for them.
      if (!(await this.#save(record, attempts))) return this.#forget(parked, entry)
      if (await parked.store(record, entry, untilMs)) return true
      return this.#forget(parked, entry)
    } finally {
      this.#gate.leave()
    }
  }

  async #park(record: KafkaRecord): Promise<boolean> {
    this.#gate.enter()
    try {
      const { parked } = this.#require()
      const entry = parked.create(record, 'waiting', noAttempts, 0)
      if (await parked.store(record, entry, null)) return true
      return this.#forget(parked, entry)
    } finally {
      this.#gate.leave()
    }
  }

  #require(): { parked: ParkedWorker } {
    if (this.#parked === null) throw new Error('records are parked only if redrive is configured')
    return { parked: this.#parked }
  }

  #forget(parked: ParkedWorker, entry: ReturnType<ParkedWorker['create']>): false {
    parked.forget(entry)
    return false
  }

  /** Writes the dead letter. False: the partition is lost or the worker stops. */
  async #bury(record: KafkaRecord, attempts: Attempts, error: unknown): Promise<boolean> {
    const { settings, deadLetters, events, counts } = this.#parts
    const retrying = { gate: this.#gate, events, context: { during: 'dead-letter', ...this.#place } } as const
    this.#gate.enter()
    try {
      const isHeld = settings.holdsKeys && record.key !== null && record.letterId === undefined
      if (isHeld && !(await this.#hold(record, attempts))) return false
      const topic = await untilDone(retrying, () => deadLetters.send(record, attempts))
      if (topic === undefined) return false
      counts.deadLettered++
      events.onDeadLetter({ record, error, attempts: attempts.failed, topic })
      return true
    } finally {
      this.#gate.leave()
    }
  }

  /**
   * Holds the key before the dead letter is written: if the worker crashes in between, the record is read
   * again and dies again, because its attempts are committed.
   */
  async #hold(record: KafkaRecord, attempts: Attempts): Promise<boolean> {
    const { parked } = this.#require()
    if (parked.find(record.offset) !== undefined) return true
    const entry = parked.create(record, 'held', attempts, 0)
    if (!(await this.#save(record, attempts))) return this.#forget(parked, entry)
    return (await parked.store(record, entry, null)) || this.#forget(parked, entry)
  }

  get #place() {
    const { topic, partition } = this.claim
    return { topic, partition }
  }
}

/** Chunks overlap the position after a pause. */
function findFirst(records: readonly KafkaRecord[], position: number): number {
  if ((records[0]?.offset ?? 0) >= position) return 0
  const found = records.findIndex(({ offset }) => offset >= position)
  return found === -1 ? records.length : found
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/**
 * Processes the records of a partition that wait in Redrive. Records of one key stay in order: only the first
 * of them is due. A record that fails again is stored with its new attempts and the time of the next one, so
 * no wait delays the records of other keys.
 */

import { KafkaRecord } from '../records/kafka-record.ts'
import { type Attempts, abandonAttempt, countCrash, decideNext, startAttempt } from './attempts.ts'
import { nameKey, type ParkedKind, type ParkedQueue, type ParkedRecord } from './parked-records.ts'
import type { PartitionGate } from './partition-gate.ts'
import type { PartitionParts } from './partition-parts.ts'
import { runAttempt } from './run-attempt.ts'
import { untilDone } from './until-done.ts'

export class ParkedWorker {
  readonly #parts: PartitionParts
  readonly #queue: ParkedQueue
  readonly #gate: PartitionGate
  readonly #signal: AbortSignal
  readonly #onChange: () => void
  /** By key, in order. */
  readonly #chains = new Map<string, ParkedRecord[]>()
  readonly #byOffset = new Map<number, ParkedRecord>()
  /** Processed or given up; only the item is left to delete. */
  readonly #done = new Set<ParkedRecord>()
  #running: Promise<void> = Promise.resolve()

  constructor(
    parts: PartitionParts,
    queue: ParkedQueue,
    gate: PartitionGate,
    signal: AbortSignal,
    onChange: () => void,
  ) {
    this.#parts = parts
    this.#queue = queue
    this.#gate = gate
    this.#signal = signal
    this.#onChange = onChange
  }

  get size(): number {
    return this.#byOffset.size
  }

  get hasRecords(): boolean {
    return this.#byOffset.size > 0
  }

  get ended(): Promise<void> {
    return this.#running
  }

  /** Reads the records that were stored before, and starts. False: the partition was lost in the meantime. */
  async load(): Promise<boolean> {
    const { isKnown, hasParked } = this.#parts.start
    if (!isKnown || hasParked) {
      const found = await untilDone(this.#retrying, () => this.#queue.load())
      if (found === undefined) return false
      for (const parked of found) this.#add(parked)
    }
    this.#running = this.#run()
    return true
  }

  find(offset: number): ParkedRecord | undefined {
    return this.#byOffset.get(offset)
  }

  /** Redrive has the record: it was read again after a crash. */
  isStored({ offset }: KafkaRecord): boolean {
    const found = this.#byOffset.get(offset)
    return found !== undefined && found.kind !== 'held'
  }

  /** Records of its key before it are not done. A redriven record is never held: it ends the hold. */
  isHeld(record: KafkaRecord): boolean {
    const isAlone = record.key === null || record.letterId !== undefined || this.#byOffset.has(record.offset)
    return !isAlone && this.#chains.has(nameKey(record))
  }

  /** Adds a record, so that later records of its key are held. `store` stores it. */
  create(record: KafkaRecord, kind: ParkedKind, attempts: Attempts, dueAtMs: number): ParkedRecord {
    const { offset } = record
    const parked = { offset, keyName: nameKey(record), kind, dueAtMs, attempts, itemId: '', version: 0 }
    this.#add(parked)
    return parked
  }

  forget(parked: ParkedRecord): void {
    const chain = this.#chains.get(parked.keyName)?.filter((each) => each !== parked) ?? []
    if (chain.length === 0) this.#chains.delete(parked.keyName)
    else this.#chains.set(parked.keyName, chain)
    this.#byOffset.delete(parked.offset)
    this.#done.delete(parked)
    this.#onChange()
  }

  /** False: it was not stored before the time was over, or the partition is lost. */
  async store(record: KafkaRecord, parked: ParkedRecord, untilMs: number | null): Promise<boolean> {
    const kept = parked.kind === 'held' ? withoutValue(record) : record
    const isStored = await untilDone(
      this.#retrying,
      async () => {
        await this.#queue.store(kept, parked)
        return true
      },
      untilMs ?? Number.POSITIVE_INFINITY,
    )
    if (isStored === true) this.#parts.counts.parked++
    this.#gate.wake()
    return isStored === true
  }

  get #retrying() {
    const { events, claim } = this.#parts
    const context = { during: 'redrive', topic: claim.topic, partition: claim.partition } as const
    return { gate: this.#gate, events, context }
  }

  #add(parked: ParkedRecord): void {
    const chain = this.#chains.get(parked.keyName)
    if (chain === undefined) this.#chains.set(parked.keyName, [parked])
    else chain.push(parked)
    this.#byOffset.set(parked.offset, parked)
  }

  async #run(): Promise<void> {
    while (await this.#gate.waitUntilOpen()) {
      const { head, dueAtMs } = this.#findFirstDue()
      const waitMs = dueAtMs - this.#parts.nowMs()
      if (head === undefined) await this.#gate.waitForChange()
      else if (waitMs > 0) await this.#gate.waitUntil(waitMs)
      else await this.#processOnce(head)
    }
  }

  #findFirstDue(): Readonly<{ head: ParkedRecord | undefined; dueAtMs: number }> {
    let first: ParkedRecord | undefined
    for (const [head] of this.#chains.values())
      if (
        head !== undefined &&
        head.itemId !== '' &&
        head.dueAtMs < (first?.dueAtMs ?? Number.POSITIVE_INFINITY)
      )
        first = head
    return { head: first, dueAtMs: first?.dueAtMs ?? 0 }
  }

  async #processOnce(head: ParkedRecord): Promise<void> {
    this.#gate.enter()
    try {
      if (this.#done.has(head)) await this.#remove(head)
      else if (head.kind === 'held') await this.#checkHold(head)
      else await this.#process(head)
    } catch (error) {
      this.#parts.events.onError(error, this.#retrying.context)
      head.dueAtMs = this.#parts.nowMs() + errorPauseMs
    } finally {
      this.#gate.leave()
    }
  }

  async #remove(head: ParkedRecord): Promise<void> {
    this.#done.add(head)
    await this.#queue.remove(head)
    this.forget(head)
  }

  /** The letter may not be in Redrive yet: then the key stays held. */
  async #checkHold(head: ParkedRecord): Promise<void> {
    const { settings, nowMs, claim } = this.#parts
    const { client, cluster } = settings.redrive ?? {}
    const place = [cluster ?? '', claim.topic, String(claim.partition), String(head.offset), settings.group]
    const sourceId = place.map(encodeURIComponent).join('/')
    const status = await client?.getLetter(sourceId).then((letter) => letter.status, ignoreMissingLetter)
    if (status === 'RESOLVED' || status === 'DISCARDED') await this.#remove(head)
    else head.dueAtMs = nowMs() + settings.holdCheckMs
  }

  async #process(head: ParkedRecord): Promise<void> {
    const { nowMs, events, settings } = this.#parts
    const record = await this.#queue.read(head)
    if (record === null) return this.#reportDeleted(head)
    const before = countCrash(head.attempts, nowMs())
    const next = this.#decide(before)
    if (next.kind === 'dead') return this.#bury(record, head, before, before.error)
    if (next.kind !== 'attempt' && next.untilMs > nowMs())
      return this.#reschedule(record, head, before, next.untilMs)
    await this.#reschedule(record, head, startAttempt(before), nowMs())
    const outcome = await runAttempt(this.#parts, record, before, this.#signal)
    if (outcome.kind === 'processed') return this.#remove(head)
    if (outcome.kind === 'abandoned') {
      // The attempt does not count. If this cannot be stored, the next worker counts it.
      await this.#reschedule(record, head, abandonAttempt(before), nowMs()).catch(() => {})
      return
    }
    const { attempts, thrown } = outcome
    const then = this.#decide(attempts)
    if (then.kind === 'dead' || then.kind === 'attempt') return this.#bury(record, head, attempts, thrown)
    const delayMs = Math.max(then.untilMs - nowMs(), 0)
    events.onRetry({
      record,
      error: thrown,
      attempt: attempts.failed,
      delayMs,
      isHandedOver: delayMs > settings.waitMsMax,
    })
    await this.#reschedule(record, head, attempts, then.untilMs)
  }

  #reportDeleted(head: ParkedRecord): void {
    const problem = `the item of record ${head.offset} was deleted from queue ${this.#queue.name}`
    this.#parts.events.onError(new Error(`${problem}: the record is not processed`), this.#retrying.context)
    this.forget(head)
  }

  #decide(attempts: Attempts) {
    const { delaysMs, waitMsMax } = this.#parts.settings
    return decideNext(attempts, { delaysMs, waitMsMax, canHandOver: true }, false)
  }

  async #reschedule(
    record: KafkaRecord,
    head: ParkedRecord,
    attempts: Attempts,
    dueAtMs: number,
  ): Promise<void> {
    Object.assign(head, { kind: 'retry', attempts, dueAtMs })
    await this.#queue.store(record, head)
  }

  /**
   * Writes the dead letter, and then stores that its key is held. A crash in between repeats the dead letter,
   * which Redrive recognises by the place of the record.
   */
  async #bury(record: KafkaRecord, head: ParkedRecord, attempts: Attempts, error: unknown): Promise<void> {
    const { settings, deadLetters, events, counts, nowMs } = this.#parts
    head.attempts = attempts
    const topic = await deadLetters.send(record, attempts)
    counts.deadLettered++
    events.onDeadLetter({ record, error, attempts: attempts.failed, topic })
    if (!settings.holdsKeys || record.key === null) return this.#remove(head)
    Object.assign(head, { kind: 'held', dueAtMs: nowMs() + settings.holdCheckMs })
    await this.#queue.store(withoutValue(record), head)
  }
}

const errorPauseMs = 1_000

/** A hold needs the place and the key of the record only. */
function withoutValue(record: KafkaRecord): KafkaRecord {
  return new KafkaRecord({ ...record, value: null, rawHeaders: [] })
}

function ignoreMissingLetter(error: unknown): undefined {
  const code = (error as { code?: unknown } | null)?.code
  if (code === 'LETTER_NOT_FOUND') return undefined
  throw error
}

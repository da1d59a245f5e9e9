/**
 * Decides the outcome of a redrive to Kafka. The record was processed if its consumer group passed it and it
 * did not die again: no death arrived within a grace time after that, and the dead-letter topics have been
 * read past that time. A death is no matter of this decision: it ends the redrive at once, as failed.
 */

import type { Failure } from '../items/item.ts'
import type { Instant } from '../time/instant.ts'

export type SentRecord = Readonly<{
  topic: string
  group: string
  sentAt: Instant
  /** -1: it is not known yet whether the record was sent. */
  offset: number
  /** When the group was first seen behind the record; null: not yet. */
  passedAt: Instant | null
}>

export type ProofFacts = Readonly<{
  now: Instant
  graceUs: number
  timeoutUs: number
  /** All dead-letter topics of the cluster have been read up to the records of this time. */
  readUntil: Instant
  isGroupGone: boolean
}>

export type ProofDecision = Readonly<
  { outcome: 'wait' } | { outcome: 'resolved' } | { outcome: 'unknown'; reason: string }
>

export function decideProof(record: SentRecord, facts: ProofFacts): ProofDecision {
  const { group, sentAt, passedAt } = record
  const { now, graceUs, timeoutUs, readUntil, isGroupGone } = facts
  if (record.offset < 0) return { outcome: 'wait' }
  const deathsKnownAt = (passedAt ?? sentAt) + graceUs
  const areDeathsKnown = now >= deathsKnownAt && readUntil >= deathsKnownAt
  if (passedAt !== null && group !== '' && areDeathsKnown) return { outcome: 'resolved' }
  if (group === '' && areDeathsKnown) return unknown(`the consumer group that should process it is unknown`)
  if (passedAt === null && isGroupGone && areDeathsKnown)
    return unknown(`consumer group ${group}, which should process it, does not exist`)
  if (now >= sentAt + timeoutUs)
    return unknown(
      passedAt === null
        ? `consumer group ${group} did not pass it in time`
        : 'the dead-letter topics could not be read in time',
    )
  return { outcome: 'wait' }
}

function unknown(reason: string): ProofDecision {
  return { outcome: 'unknown', reason }
}

/** The failure of a letter whose redriven record has an unknown outcome. */
export function createUnknownProof(
  { topic }: SentRecord,
  place: Readonly<{ partition: number; offset: number }>,
  reason: string,
  now: Instant,
): Failure {
  return {
    errorCode: 'outcome_unknown',
    errorClass: '',
    message: `the record was sent to ${topic}, partition ${place.partition}, offset ${place.offset}, and ${reason}`,
    stack: '',
    attempts: 0,
    firstFailedAt: now,
    lastFailedAt: now,
    worker: '',
  }
}

import { describeThrown, isNonRetryable } from '../errors.ts'
import type { KafkaRecord } from '../records/kafka-record.ts'
import { type Attempts, failAttempt } from './attempts.ts'
import type { PartitionParts } from './partition-parts.ts'

export type AttemptOutcome = Readonly<
  | { kind: 'processed' }
  /** The worker stopped the handler: the attempt does not count. */
  | { kind: 'abandoned' }
  | { kind: 'failed'; attempts: Attempts; thrown: unknown }
>

/** Calls the handler once. */
export async function runAttempt(
  { settings, counts, nowMs, onProcessed }: PartitionParts,
  record: KafkaRecord,
  attempts: Attempts,
  signal: AbortSignal,
): Promise<AttemptOutcome> {
  try {
    await settings.handler(record, { attempt: attempts.failed + 1, group: settings.group, signal })
  } catch (thrown) {
    return signal.aborted ? { kind: 'abandoned' } : noteFailure({ settings, counts, nowMs }, attempts, thrown)
  }
  counts.processed++
  onProcessed()
  return { kind: 'processed' }
}

export function noteFailure(
  { settings, counts, nowMs }: Pick<PartitionParts, 'settings' | 'counts' | 'nowMs'>,
  attempts: Attempts,
  thrown: unknown,
): AttemptOutcome & { kind: 'failed' } {
  counts.failed++
  const isPermanent = isNonRetryable(thrown, settings.nonRetryable)
  return {
    kind: 'failed',
    attempts: failAttempt(attempts, describeThrown(thrown), isPermanent, nowMs()),
    thrown,
  }
}

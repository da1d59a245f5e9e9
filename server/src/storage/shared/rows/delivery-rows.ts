/** The rows of the tables of deliveries, which have the same columns in both stores. */
import type { PushErrorKind } from '../../../core/webhook/attempt.ts'
import type { ConsumerDelivery } from '../../../core/webhook/delivery/consumer-delivery.ts'
import { addLatencies } from '../../../core/webhook/delivery/latency.ts'
import type { SigningSecrets } from '../../../core/webhook/signature.ts'
import type { ConsumerFigures, NewAttempt, StoredAttempt, StoredDelivery } from '../../contract/deliveries.ts'
import {
  type DatabaseRow,
  readBytesOrNull,
  readJson,
  readNumber,
  readNumberOrNull,
  readText,
  readTextOrNull,
} from './row-values.ts'
import { toConsumer } from './webhook-rows.ts'

/** From a row of the consumer, with `delivery_version`, `document` and `secrets`. */
export function toStoredDelivery(row: DatabaseRow): StoredDelivery {
  const isStored = readNumberOrNull(row, 'delivery_version') !== null
  return {
    consumer: toConsumer(row),
    version: readNumberOrNull(row, 'delivery_version') ?? 0,
    delivery: isStored ? readJson<ConsumerDelivery>(row, 'document') : null,
    secrets: readTextOrNull(row, 'secrets') === null ? null : readJson<SigningSecrets>(row, 'secrets'),
  }
}

export const attemptColumns = [
  'consumer',
  'job',
  'ordinal',
  'started_at',
  'latency_us',
  'address',
  'status',
  'content_type',
  'body',
  'is_truncated',
  'failure',
] as const

type AttemptValue = string | number | Uint8Array | null
export type AttemptRow = readonly AttemptValue[]

/** The values in the order of `attemptColumns`. The failure is one column: nothing searches in it. */
export function toAttemptRow(attempt: NewAttempt): AttemptRow {
  const { failure } = attempt
  return [
    attempt.consumer,
    attempt.job,
    attempt.ordinal,
    attempt.startedAt,
    attempt.latencyUs,
    attempt.address,
    attempt.status,
    attempt.contentType,
    attempt.body,
    attempt.isTruncated ? 1 : 0,
    failure === null
      ? null
      : JSON.stringify([failure.kind, failure.errorClass, failure.errorCode, failure.message]),
  ]
}

export function toStoredAttempt(row: DatabaseRow): StoredAttempt {
  const failure =
    readTextOrNull(row, 'failure') === null
      ? null
      : readJson<[PushErrorKind, string, string, string]>(row, 'failure')
  return {
    number: readNumber(row, 'number'),
    consumer: readNumber(row, 'consumer'),
    job: readText(row, 'job'),
    ordinal: readNumber(row, 'ordinal'),
    startedAt: readNumber(row, 'started_at'),
    latencyUs: readNumber(row, 'latency_us'),
    address: readTextOrNull(row, 'address'),
    status: readNumberOrNull(row, 'status'),
    contentType: readTextOrNull(row, 'content_type'),
    body: readBytesOrNull(row, 'body'),
    isTruncated: readNumber(row, 'is_truncated') === 1,
    failure:
      failure === null
        ? null
        : { kind: failure[0], errorClass: failure[1], errorCode: failure[2], message: failure[3] },
  }
}

/** Sums rows of minutes by consumer. The rows are in the order of their consumers. */
export function sumFigures(rows: readonly DatabaseRow[]): ConsumerFigures[] {
  const sums = new Map<number, ConsumerFigures>()
  for (const row of rows) {
    const consumer = readNumber(row, 'consumer')
    const before = sums.get(consumer) ?? { consumer, delivered: 0, failed: 0, latencies: [] }
    sums.set(consumer, {
      consumer,
      delivered: before.delivered + readNumber(row, 'delivered'),
      failed: before.failed + readNumber(row, 'failed'),
      latencies: addLatencies(before.latencies, readJson<readonly number[]>(row, 'latencies')),
    })
  }
  return [...sums.values()]
}

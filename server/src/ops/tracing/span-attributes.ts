/** Names, kinds and attributes of spans, by the OpenTelemetry conventions for messaging. */
import { type Attributes, SpanKind } from '@opentelemetry/api'
import type { NewSpan, SpanOperation, SpanOutcome } from '../../core/trace/tracing.ts'
import { KnownError } from '../../errors.ts'

type Convention = Readonly<{ type?: string; kind: SpanKind; system?: string }>

/** A span whose context goes out with the items is a producer; all other calls are clients. */
const conventions: Readonly<Record<SpanOperation, Convention>> = {
  produce: { type: 'send', kind: SpanKind.PRODUCER },
  lease: { type: 'receive', kind: SpanKind.CLIENT },
  complete: { type: 'settle', kind: SpanKind.CLIENT },
  retry: { type: 'settle', kind: SpanKind.CLIENT },
  'dead-letter': { kind: SpanKind.INTERNAL },
  redrive: { type: 'send', kind: SpanKind.PRODUCER },
  push: { type: 'send', kind: SpanKind.PRODUCER },
  ingest: { type: 'receive', kind: SpanKind.CLIENT, system: 'kafka' },
  replay: { type: 'send', kind: SpanKind.PRODUCER, system: 'kafka' },
}

export function describeSpan({ operation, destination }: Pick<NewSpan, 'operation' | 'destination'>) {
  const { type, kind, system = 'redrive' } = conventions[operation]
  const attributes: Attributes = {
    'messaging.system': system,
    'messaging.operation.name': operation,
    'messaging.destination.name': destination,
    ...(type !== undefined && { 'messaging.operation.type': type }),
  }
  return { name: `${operation} ${destination}`, kind, attributes }
}

export function describeOutcome({ ids, count, partition, attributes }: SpanOutcome): Attributes {
  const counted = count ?? ids?.length
  const [only] = ids ?? []
  return {
    ...attributes,
    ...(partition !== undefined && { 'messaging.destination.partition.id': String(partition) }),
    ...(counted !== undefined && counted !== 1 && { 'messaging.batch.message_count': counted }),
    ...(counted === 1 && only !== undefined && { 'messaging.message.id': only }),
  }
}

/** The code of an error of the catalogue; otherwise its class. */
export function describeError(error: unknown): Readonly<{ type: string; message: string }> {
  if (error instanceof KnownError) return { type: error.code, message: error.message }
  if (error instanceof Error) return { type: error.name, message: error.message }
  return { type: 'Error', message: String(error) }
}

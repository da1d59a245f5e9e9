/** A dead letter as a message of its dead-letter topic, with the fields of the envelope. */
import { type Static, Type } from 'typebox'
import type { Item } from '../../core/items/item.ts'
import { toLetterStatus } from '../../ops/metrics/letter-status.ts'
import type { ApiContext } from '../context.ts'
import { component } from '../http/openapi/annotations.ts'
import { formatInstant } from '../http/wire/wire-time.ts'
import {
  KeyView,
  type LargePayloadView,
  PayloadView,
  viewKey,
  viewLargePayload,
} from '../v1/values/content-view.ts'
import { nullable } from '../v1/values/schemas.ts'

const stackShown = 500

export const InternalMessage = component(
  'InternalMessage',
  Type.Object({
    id: Type.String({ description: 'Id of the letter.' }),
    status: Type.String({ description: 'PENDING, RETRYING, RESOLVED, DEAD or DISCARDED.' }),
    queue: Type.String({ description: 'The dead queue of the dead-letter topic.' }),
    reference: Type.String({ description: 'The place of the record: cluster/topic/partition/offset.' }),
    original_topic: Type.String({ description: 'The topic that the message came from.' }),
    original_partition: nullable(Type.Integer(), 'The partition of the original record, if it is known.'),
    original_offset: nullable(Type.String(), 'The offset of the original record, if it is known.'),
    original_key: KeyView,
    original_value: PayloadView,
    consumer_group: nullable(Type.String(), 'The consumer group that failed, if it is known.'),
    cluster: nullable(Type.String(), 'The Kafka cluster.'),
    error_details: Type.Object(
      {
        exception_class: Type.String({ description: 'The class of the error.' }),
        message: Type.String({ description: 'The message of the error.' }),
        stack_trace: Type.String({ description: `The first ${stackShown} characters of the stack.` }),
      },
      { description: 'The failure that made it a dead letter.' },
    ),
    retry_count: Type.Integer({ description: 'Number of redrives that failed.' }),
    worker_instance: Type.String({ description: 'The worker of the last attempt.' }),
    first_failure_at: nullable(Type.String({ format: 'date-time' }), 'When the first attempt failed.'),
    last_failure_at: nullable(Type.String({ format: 'date-time' }), 'When the last attempt failed.'),
  }),
)

/** A page of letters has up to 16 MiB of payloads, so all but small ones are written when they are sent. */
const largeBytesMin = 4_096

/** A letter whose payload may be written when it is sent. */
export async function viewInternalMessage(
  item: Item,
  { bodyThread }: Pick<ApiContext, 'bodyThread'>,
): Promise<
  Omit<Static<typeof InternalMessage>, 'original_value'> & { original_value: PayloadView | LargePayloadView }
> {
  const { failure, origin, payload } = item
  return {
    id: item.rootId,
    status: toLetterStatus(item.state),
    queue: item.queue,
    reference: item.reference,
    original_topic: origin?.name ?? item.queue,
    original_partition: origin?.partition ?? null,
    original_offset: origin === null || origin.id === '' ? null : origin.id,
    original_key: viewKey(item.key),
    original_value: await viewLargePayload(payload, 'json', bodyThread.isJson, largeBytesMin),
    consumer_group: origin?.group ?? null,
    cluster: origin?.cluster ?? null,
    error_details: {
      exception_class: failure?.errorClass ?? '',
      message: failure?.message ?? '',
      stack_trace: (failure?.stack ?? '').slice(0, stackShown),
    },
    retry_count: item.retryCount,
    worker_instance: failure?.worker ?? '',
    first_failure_at: failure === null ? null : formatInstant(failure.firstFailedAt),
    last_failure_at: failure === null ? null : formatInstant(failure.lastFailedAt),
  }
}

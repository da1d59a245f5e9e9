/** The line of a message and its jobs in an exported file. */
import { toDate } from '../../../core/time/instant.ts'
import { createJobIds } from '../../../core/webhook/job-id.ts'
import type { Consumer, JobState, Message } from '../../../storage/contract/webhooks.ts'

/** `states`: of the jobs of the message, in their order. Null: the job was deleted. */
export function formatMessageLine(
  message: Message,
  states: readonly JobState[],
  consumers: ReadonlyMap<number, Consumer>,
): string {
  const { number, dispatchedAt } = message
  const nextId = createJobIds(number, dispatchedAt ?? message.receivedAt)
  const jobs = message.jobs.flatMap(({ consumerNumber }, index) => {
    const id = nextId()
    const [consumer, state] = [consumers.get(consumerNumber), states[index]]
    if (state == null) return []
    return [
      {
        ID: id,
        ConsumerID: consumer?.id ?? '',
        ListenerName: consumer?.name ?? '',
        ListenerEndpoint: consumer?.callbackUrl ?? '',
        Status: 'DELIVERED',
        StatusChangedAt: formatTime(state.changedAt),
      },
    ]
  })
  return JSON.stringify({ message: viewMessage(message), jobs })
}

function viewMessage(message: Message) {
  return {
    ID: message.id,
    ChannelID: message.channelId,
    ProducerID: message.producerId,
    ProducedBy: message.producerName,
    ContentType: message.contentType,
    Priority: message.priority,
    Status: 'DISPATCHED',
    ReceivedAt: formatTime(message.receivedAt),
    DispatchedAt: message.dispatchedAt === null ? null : formatTime(message.dispatchedAt),
    Headers: Object.fromEntries(
      message.headers.map(([name, value]) => [name, new TextDecoder().decode(value ?? undefined)]),
    ),
    Payload: new TextDecoder().decode(message.payload),
  }
}

function formatTime(instant: number): string {
  return toDate(instant).toISOString()
}

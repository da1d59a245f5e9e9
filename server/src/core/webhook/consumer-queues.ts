/** The names of the queues of a webhook consumer. */
import type { QueueName } from '../ids/ids.ts'

const partMax = 120
const plain = /^[A-Za-z0-9._-]+$/

/**
 * `webhook:<channel>:<consumer>` and its dead queue. An id that a queue name cannot contain is cut and
 * escaped, and then `unique` makes the name different from all others. `isTaken`: a queue of this name
 * exists, because somebody created one.
 */
export function nameConsumerQueues(
  channelId: string,
  consumerId: string,
  unique: string,
  isTaken: (name: QueueName) => boolean,
): Readonly<{ queue: QueueName; deadQueue: QueueName }> {
  const isPlain = [channelId, consumerId].every((id) => plain.test(id) && id.length <= partMax)
  const readable = `webhook:${escapePart(channelId)}:${escapePart(consumerId)}`
  const names = (queue: string) => ({ queue, deadQueue: `${queue}:dead` })
  const first = names(readable)
  if (isPlain && !isTaken(first.queue) && !isTaken(first.deadQueue)) return first
  return names(`${readable}:${unique}`)
}

function escapePart(id: string): string {
  return id.replaceAll(/[^A-Za-z0-9._-]/g, '_').slice(0, partMax)
}

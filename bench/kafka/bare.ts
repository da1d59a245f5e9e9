/** The Kafka client alone: what a program without Redrive would do. */
import { randomUUID } from 'node:crypto'
import { Consumer } from '@platformatic/kafka'

/**
 * Reads a topic to its end with the loop of the client's documentation, committing in the background. Returns
 * records per second, from the first record to the last.
 */
export async function readWithBareClient(
  brokers: readonly string[],
  topic: string,
  count: number,
): Promise<number> {
  const consumer = new Consumer({
    clientId: 'bench',
    bootstrapBrokers: [...brokers],
    groupId: `bare-${randomUUID()}`,
  })
  const stream = await consumer.consume({
    topics: [topic],
    mode: 'earliest',
    autocommit: true,
    maxBytes: 8 * 2 ** 20,
    maxWaitTime: 500,
  })
  let seen = 0
  let startedAt = 0
  let bytes = 0
  for await (const { value } of stream) {
    if (seen === 0) startedAt = performance.now()
    bytes += value?.byteLength ?? 0
    if (++seen === count) break
  }
  const seconds = (performance.now() - startedAt) / 1_000
  await consumer.close(true)
  if (bytes === 0) throw new Error('the records had no values')
  return count / seconds
}

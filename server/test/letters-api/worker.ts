/** The calls of a worker over the Queue API. */
import type { Body, LettersServer } from './servers.ts'

export type LeasedItem = Readonly<{ id: string; partition: number; text: string }>

/** Leases up to `count` items that are available now; none if there are none. */
export async function lease(api: LettersServer, queue: string, count = 1): Promise<LeasedItem[]> {
  const { status, body } = await api.post('/v1/queue.lease', {
    queue_name: queue,
    batch_size: count,
    client_id: 'worker',
    request_timeout: '1s',
  })
  if (status !== 200) return []
  return (body.items ?? []).map(({ id, bytes }: Body) => ({
    id,
    partition: body.partition ?? 0,
    text: Buffer.from(bytes ?? '', 'base64').toString(),
  }))
}

export async function complete(
  api: LettersServer,
  queue: string,
  items: readonly LeasedItem[],
): Promise<void> {
  const [{ partition } = { partition: 0 }] = items
  const ids = items.map(({ id }) => id)
  const completed = await api.post('/v1/queue.complete', {
    queue_name: queue,
    partition,
    request_timeout: '5s',
    ids,
  })
  if (completed.status !== 200) throw new Error(JSON.stringify(completed.body))
}

/** Declares leased items dead with this error message. */
export async function declareDead(
  api: LettersServer,
  queue: string,
  items: readonly LeasedItem[],
  message: string,
): Promise<void> {
  const [{ partition } = { partition: 0 }] = items
  await api.client.retry(
    queue,
    partition,
    items.map(({ id }) => ({ id, isDead: true })),
    { failure: { errorClass: 'WorkerError', message } },
  )
}

/** Produces an item per text, leases it and declares it dead: each becomes a dead letter. */
export async function createLetters(
  api: LettersServer,
  queue: string,
  texts: readonly string[],
  message: string,
): Promise<void> {
  const produced = await api.post(`/api/v1/queues/${queue}/items`, {
    items: texts.map((text) => ({ payload: { text } })),
  })
  if (produced.status !== 200) throw new Error(JSON.stringify(produced.body))
  for (let left = texts.length; left > 0; ) {
    const items = await lease(api, queue, left)
    await declareDead(api, queue, items, message)
    left -= items.length
  }
}

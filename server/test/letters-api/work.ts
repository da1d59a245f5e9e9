/** What workers do in tests: over the Queue API, as any client would. */
import type { Body, Served } from './servers.ts'

export type Leased = Readonly<{ id: string; partition: number; text: string }>

/** What is there now, up to `count`; none when there is none. */
export async function lease(api: Served, queue: string, count = 1): Promise<Leased[]> {
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

export async function complete(api: Served, queue: string, items: readonly Leased[]): Promise<void> {
  const [{ partition } = { partition: 0 }] = items
  const ids = items.map(({ id }) => id)
  const done = await api.post('/v1/queue.complete', {
    queue_name: queue,
    partition,
    request_timeout: '5s',
    ids,
  })
  if (done.status !== 200) throw new Error(JSON.stringify(done.body))
}

/** Declares items dead, with an error per item. */
export async function kill(
  api: Served,
  queue: string,
  items: readonly Leased[],
  error: string,
): Promise<void> {
  const { client } = api
  const [{ partition } = { partition: 0 }] = items
  await client.retry(
    queue,
    partition,
    items.map(({ id }) => ({ id, isDead: true })),
    { failure: { errorClass: 'WorkerError', message: error } },
  )
}

/** Produces, leases and kills: one dead letter per text, with what the worker said. */
export async function die(
  api: Served,
  queue: string,
  texts: readonly string[],
  error: string,
): Promise<void> {
  const items = texts.map((text) => ({ text }))
  const made = await api.post(`/api/v1/queues/${queue}/items`, { items })
  if (made.status !== 200) throw new Error(JSON.stringify(made.body))
  for (let left = texts.length; left > 0; ) {
    const items = await lease(api, queue, left)
    await kill(api, queue, items, error)
    left -= items.length
  }
}

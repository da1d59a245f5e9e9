/** Calls to a server: setting it up, broadcasting, and the API calls whose duration is measured. */
import { quantile, type Timed } from '../report.ts'

export const channel = 'bench'
export const consumers = Array.from({ length: 7 }, (_, n) => `consumer-${n}`)
export const body = JSON.stringify({ order: 7, text: 'x'.repeat(1_000) })

export const broadcastHeaders = {
  'X-Broker-Channel-Token': 'c',
  'X-Broker-Producer-ID': 'p',
  'X-Broker-Producer-Token': 'p',
  'Content-Type': 'application/json',
}

export async function setUp(url: string, callbackUrls: readonly string[]): Promise<void> {
  const put = async (path: string, form: Record<string, string>): Promise<void> => {
    const response = await fetch(url + path, { method: 'PUT', body: new URLSearchParams(form) })
    if (!response.ok) throw new Error(`PUT ${path}: ${await response.text()}`)
  }
  await put('/producer/p', { token: 'p' })
  for (const id of [channel, 'probe']) await put(`/channel/${id}`, { token: 'c' })
  for (const [at, id] of consumers.entries())
    await put(`/channel/${channel}/consumer/${id}`, { callbackUrl: callbackUrls[at] as string })
  await put('/channel/probe/consumer/k', { callbackUrl: callbackUrls[0] as string })
}

export async function changeConsumers(url: string, action: 'pause' | 'resume'): Promise<void> {
  for (const id of consumers) {
    const response = await fetch(`${url}/api/v1/webhooks/${channel}/${id}/${action}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ reason: 'benchmark' }),
    })
    if (!response.ok) throw new Error(`${action}: ${await response.text()}`)
  }
}

/** Returns the duration in milliseconds. */
export async function broadcast(url: string, to = channel): Promise<number> {
  const startedAt = performance.now()
  const path = `${url}/channel/${to}/broadcast`
  const response = await fetch(path, { method: 'POST', headers: broadcastHeaders, body })
  await response.arrayBuffer()
  if (response.status !== 201) throw new Error(`broadcast: ${response.status}`)
  return performance.now() - startedAt
}

export async function broadcastAll(url: string, count: number, callers: number) {
  const times: number[] = []
  let next = 0
  const startedAt = performance.now()
  const call = async (): Promise<void> => {
    while (next++ < count) times.push(await broadcast(url))
  }
  await Promise.all(Array.from({ length: callers }, call))
  const perSecond = (1_000 * count) / (performance.now() - startedAt)
  return { perSecond, times: times.sort((left, right) => left - right) }
}

export async function countDispatched(url: string): Promise<number> {
  const response = await fetch(`${url}/channel/${channel}/messages-status`)
  const { counts } = (await response.json()) as { counts: Record<string, { Count: number }> }
  return counts.DISPATCHED?.Count ?? 0
}

const readPaths = [
  '/dlq-status',
  '/job-status',
  '/channels',
  `/channel/${channel}/consumers`,
  `/channel/${channel}/messages`,
  `/channel/${channel}/messages-status`,
  `/channel/${channel}/consumer/${consumers[0]}/dlq`,
  '/api/v1/webhooks',
  '/metrics',
]

/** Calls every read path once, and broadcasts to the probe channel. Adds the durations to `times`. */
export async function callEverything(url: string, times: Map<string, number[]>): Promise<void> {
  const add = (path: string, ms: number): void => void (times.get(path) ?? setNew(times, path)).push(ms)
  for (const path of readPaths) {
    const startedAt = performance.now()
    const response = await fetch(url + path)
    await response.arrayBuffer()
    if (!response.ok) throw new Error(`${path}: ${response.status}`)
    add(path, performance.now() - startedAt)
  }
  add('broadcast', await broadcast(url, 'probe'))
}

function setNew(times: Map<string, number[]>, path: string): number[] {
  const list: number[] = []
  times.set(path, list)
  return list
}

export function toTimed(subject: string, operation: string, given: readonly number[], aimMs: number): Timed {
  const times = given.toSorted((left, right) => left - right)
  return {
    subject,
    operation,
    calls: times.length,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
    aimMs,
  }
}

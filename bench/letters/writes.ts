/** The writes of an operator: redrive letters, alone and in a campaign, discard and archive them. */
import type { Engine } from '../../server/src/engine/engine.ts'
import type { Campaign, CampaignSpec, Letters } from '../../server/src/letters/letters.ts'
import type { LetterFilter } from '../../server/src/storage/contract/letters.ts'
import type { Storage } from '../../server/src/storage/contract/storage.ts'
import { searchAll } from '../../server/src/storage/search/search-letters.ts'
import { type Measured, quantile } from '../report.ts'
import { deadQueues } from './sample-letters.ts'

export const batch = 1_000
const attribution = { actor: 'bench', reason: 'benchmark', requestId: '' } as const

/** Moves `share` letters of every queue to each other state: resolved, failed again, DEAD, discarded. */
export async function mixStates(storage: Storage, share: number, now: number): Promise<void> {
  for (const { name, origin } of deadQueues) {
    const ids = await listOldest(storage, name, share * 4)
    const [resolved, failed, dead, discarded] = [0, 1, 2, 3].map((part) =>
      ids.slice(part * share, (part + 1) * share),
    ) as [string[], string[], string[], string[]]
    await redriveAll(storage, origin, resolved, now, 'complete')
    await redriveAll(storage, origin, failed, now, 'kill')
    for (let time = 0; time < 3; time++) await redriveAll(storage, origin, dead, now, 'kill')
    for (const some of toChunks(discarded)) {
      const letters = some.map((letterId) => ({ letterId }))
      await storage.write([{ op: 'discard', letters, reason: 'benchmark', now }])
    }
  }
}

async function listOldest(storage: Storage, queue: string, count: number): Promise<string[]> {
  const filter: LetterFilter = { queues: [queue], states: ['waiting'] }
  const query = {
    filter,
    order: 'deadLetteredAt',
    isDescending: false,
    countMax: batch,
    bytes: 'none',
  } as const
  const ids: string[] = []
  for await (const { found } of searchAll(storage, query)) {
    ids.push(...found.map(({ item }) => item.rootId))
    if (ids.length >= count) break
  }
  return ids.slice(0, count)
}

async function redriveAll(
  storage: Storage,
  queue: string,
  ids: readonly string[],
  now: number,
  end: 'complete' | 'kill',
): Promise<void> {
  for (const some of toChunks(ids)) {
    const letters = some.map((letterId) => ({ letterId, queue: null }))
    const rules = { isDeadAllowed: true, isCapped: false, actor: 'bench', now }
    const [sent] = await storage.write([{ op: 'redrive', letters, ...rules }])
    const count = sent.filter(({ isStarted }) => isStarted).length
    const holders = Array.from({ length: count }, () => 'bench')
    const [leased] = await storage.write([{ op: 'lease', queue, partition: 0, holders, now }])
    const items = leased.map(({ id }) => id)
    if (end === 'complete') await storage.write([{ op: 'complete', queue, partition: 0, ids: items, now }])
    else {
      const error = { errorClass: 'com.example.StillBroken', message: 'the same again' }
      const given = items.map((id) => ({ id, isDead: true, error }))
      await storage.write([{ op: 'retry', queue, partition: 0, items: given, now }])
    }
  }
}

/** Runs a campaign and returns the rate at which it sends letters; freezing the set is not measured. */
export async function measureCampaign(
  subject: string,
  letters: Letters,
  spec: CampaignSpec,
): Promise<Measured> {
  const { id } = await letters.campaigns.create(spec, attribution)
  let campaign = await runCampaignPass(letters, id)
  while (campaign.size === null) campaign = await runCampaignPass(letters, id)
  const startedAt = performance.now()
  const before = campaign.counts.sent
  while (campaign.counts.pending > 0 && campaign.state === 'running')
    campaign = await runCampaignPass(letters, id)
  const seconds = (performance.now() - startedAt) / 1000
  if (campaign.counts.pending > 0)
    throw new Error(`the campaign is ${campaign.state}: ${campaign.stateReason}`)
  return {
    subject,
    operation: 'campaign redrive',
    batch,
    callers: 1,
    perSecond: (campaign.counts.sent - before) / seconds,
    p50Ms: null,
    p99Ms: null,
  }
}

async function runCampaignPass(letters: Letters, id: string): Promise<Campaign> {
  await letters.passes.campaigns()
  const campaign = await letters.campaigns.get(id)
  if (campaign === null) throw new Error(`campaign ${id} does not exist`)
  return campaign
}

export function createCampaignSpec(filter: object, ratePerSecond: number): CampaignSpec {
  return {
    name: 'benchmark',
    action: 'redrive',
    selection: { filter },
    target: null,
    isDeadAllowed: false,
    canaryCount: 0,
    ratePerSecond,
    rampUs: 0,
    haltRatio: 1,
    haltMin: 1_000_000,
    limit: null,
    expectedCount: null,
  }
}

export async function measureArchive(
  subject: string,
  storage: Storage,
  queue: string,
  now: number,
): Promise<Measured> {
  const times: number[] = []
  let archived = 0
  const startedAt = performance.now()
  for (;;) {
    const began = performance.now()
    const command = { op: 'archive', queue, endedBefore: now + 1, countMax: batch, now } as const
    const [result] = await storage.write([command])
    if (result.archived === 0) break
    times.push(performance.now() - began)
    archived += result.archived
  }
  return toMeasured(subject, 'archive', archived, startedAt, times)
}

export function toMeasured(
  subject: string,
  operation: string,
  count: number,
  startedAt: number,
  times: number[],
): Measured {
  const seconds = (performance.now() - startedAt) / 1000
  times.sort((left, right) => left - right)
  const [p50Ms, p99Ms] = [quantile(times, 0.5), quantile(times, 0.99)]
  return { subject, operation, batch, callers: 1, perSecond: count / seconds, p50Ms, p99Ms }
}

/** Produces, leases and completes single items for `msMax`. Returns items per second. */
export async function runWorkload(
  engine: Engine,
  queue: string,
  callers: number,
  msMax: number,
): Promise<number> {
  const payload = new Uint8Array(300).fill(97)
  const until = performance.now() + msMax
  let handled = 0
  const worker = async (_: unknown, caller: number): Promise<void> => {
    while (performance.now() < until) {
      await engine.produce(queue, [{ payload }])
      const options = { clientId: `caller-${caller}`, countMax: 1, timeoutMs: 10_000 }
      const { partition, items } = await engine.lease(queue, options)
      await engine.complete(
        queue,
        partition,
        items.map(({ id }) => id),
      )
      handled++
    }
  }
  await Promise.all(Array.from({ length: callers }, worker))
  return handled / (msMax / 1000)
}

function toChunks<T>(list: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(list.length / batch) }, (_, at) =>
    list.slice(at * batch, (at + 1) * batch),
  )
}

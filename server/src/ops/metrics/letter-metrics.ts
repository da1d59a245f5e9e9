/**
 * Metrics of dead letters and campaigns. Figures from the exact counts of the store are the same on every
 * server. The counters of `LetterTotals` count the actions of this server only.
 */
import { Counter, Gauge, type Registry } from 'prom-client'
import { usPerSecond } from '../../core/time/instant.ts'
import { type CampaignCounts, campaignLetterStates } from '../../storage/contract/campaigns.ts'
import type { QueueCounts } from '../../storage/contract/counts.ts'
import type { LetterCount, OldestOpen } from '../../storage/contract/letters.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import { labelValuesMax, otherLabel } from './labelled-totals.ts'
import { toLetterStatus } from './letter-status.ts'
import type { LetterTotals } from './letter-totals.ts'

const unfinished = ['freezing', 'canary', 'running', 'paused', 'halted'] as const
const campaignsMax = 1_000
const queuesMax = 10_000

export type LetterFigures = Readonly<{
  letters: readonly LetterCount[]
  classes: ReadonlyMap<string, string>
  campaigns: readonly Readonly<{ id: string; state: string; counts: CampaignCounts }>[]
  /** The dead queues that accepted the most letters; one entry without a name has all others. */
  arrivals: readonly QueueCounts[]
  oldest: readonly OldestOpen[]
}>

export async function readLetterFigures(
  storage: Pick<
    StoreReads,
    'countLetters' | 'listQueues' | 'listCampaigns' | 'readQueueCounts' | 'readOldestOpen'
  >,
): Promise<LetterFigures> {
  const [letters, campaigns, queues] = await Promise.all([
    storage.countLetters({ filter: {}, by: ['queue', 'state'] }),
    storage.listCampaigns({ states: unfinished, countMax: campaignsMax }),
    storage.listQueues({ countMax: queuesMax }),
  ])
  // A dead queue is one that others use, or one with letters.
  const dead = new Set(queues.flatMap(({ deadQueue }) => deadQueue ?? []))
  for (const { queue } of letters) if (queue !== undefined) dead.add(queue)
  const shown = [...new Set(foldSmallQueues(letters).flatMap(({ queue }) => queue ?? []))]
  const [arrivals, oldest] = await Promise.all([
    dead.size === 0 ? [] : storage.readQueueCounts({ queues: [...dead], countMax: labelValuesMax }),
    shown.length === 0 ? [] : storage.readOldestOpen(shown.filter((name) => name !== otherLabel)),
  ])
  const classes = new Map(queues.map(({ name, letterClass }) => [name, letterClass]))
  return { letters, campaigns, classes, arrivals, oldest }
}

export interface LetterMetrics {
  /** Undefined: the figures could not be read, and the gauges are omitted. */
  set(figures: LetterFigures | undefined): void
}

export function createLetterMetrics(registry: Registry): LetterMetrics {
  const registers = [registry]
  const letters = new Gauge({
    name: 'redrive_letters',
    help: 'Current dead letters by dead queue, its class, and status. Exact.',
    labelNames: ['queue', 'letter_class', 'status'],
    registers,
  })
  const campaigns = new Gauge({
    name: 'redrive_campaigns',
    help: 'Campaigns that have not ended, by state.',
    labelNames: ['state'],
    registers,
  })
  const progress = createCampaignProgress(registry)
  const times = createArrivalMetrics(registry)
  return {
    set: (figures) => {
      letters.reset()
      campaigns.reset()
      progress(figures?.campaigns ?? [])
      times(figures)
      if (figures === undefined) return
      for (const { queue = '', state = 'waiting', count } of foldSmallQueues(figures.letters)) {
        const letterClass = queue === otherLabel ? otherLabel : (figures.classes.get(queue) ?? '')
        letters.inc({ queue, letter_class: letterClass, status: toLetterStatus(state) }, count)
      }
      for (const state of unfinished) campaigns.set({ state }, 0)
      for (const { state } of figures.campaigns) campaigns.inc({ state })
    },
  }
}

/** Campaigns with a series of their own, the newest first. */
const progressMax = 100

function createCampaignProgress(registry: Registry) {
  const gauge = new Gauge({
    name: 'redrive_campaign_letters',
    help: 'Letters of a campaign that has not ended, by their state in it. The newest 100 campaigns.',
    labelNames: ['campaign', 'state'],
    registers: [registry],
  })
  return (campaigns: LetterFigures['campaigns']): void => {
    gauge.reset()
    for (const { id, counts } of campaigns.slice(0, progressMax))
      for (const state of campaignLetterStates) gauge.set({ campaign: id, state }, counts[state])
  }
}

function createArrivalMetrics(registry: Registry) {
  const registers = [registry]
  const arrived = new Counter({
    name: 'worker_dlq_messages_total',
    help: 'Letters that arrived in a dead queue since its creation. Exact. (others): all but the 500 with the most.',
    labelNames: ['topic'],
    registers,
  })
  const oldest = new Gauge({
    name: 'redrive_oldest_letter_timestamp_seconds',
    help: 'Unix time of death of the oldest open letter of a dead queue. Absent without open letters.',
    labelNames: ['queue'],
    registers,
  })
  return (figures: LetterFigures | undefined): void => {
    arrived.reset()
    oldest.reset()
    for (const { queue, accepted } of figures?.arrivals ?? [])
      arrived.inc({ topic: queue ?? otherLabel }, accepted)
    for (const { queue, diedAt } of figures?.oldest ?? []) oldest.set({ queue }, diedAt / usPerSecond)
  }
}

export function registerLetterTotals(registry: Registry, totals: LetterTotals): void {
  const registers = [registry]
  const createCounter = (name: keyof LetterTotals, help: string, label?: string) =>
    new Counter({
      name: name === 'ended' ? 'redrive_redrives_ended_total' : `redrive_letters_${name}_total`,
      help,
      labelNames: label === undefined ? [] : [label],
      registers,
      collect() {
        this.reset()
        for (const [value, total] of totals[name].entries()) {
          this.inc(label === undefined ? {} : { [label]: value }, total)
        }
      },
    })
  createCounter('captured', 'Letters that this server captured, by dead queue.', 'queue')
  createCounter('redriven', 'Letters that this server redrove: manually, by campaigns and by policy.')
  createCounter('refused', 'Redrives that this server refused, by the code of the refusal.', 'refusal')
  createCounter(
    'ended',
    'Redrives that ended on this server, by outcome: resolved, failed, unknown.',
    'outcome',
  )
  createCounter('discarded', 'Letters that were discarded on this server.')
  createCounter('archived', 'Letters that this server moved to the archive, by dead queue.', 'queue')
  createCounter(
    'purged',
    'Letters that this server permanently removed from the archive, by dead queue.',
    'queue',
  )
}

/** Keeps the queues with the most letters, and adds all others up as one. */
function foldSmallQueues(rows: readonly LetterCount[]): readonly LetterCount[] {
  const sums = new Map<string, number>()
  for (const { queue = '', count } of rows) sums.set(queue, (sums.get(queue) ?? 0) + count)
  if (sums.size <= labelValuesMax) return rows
  const largest = [...sums].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, labelValuesMax)
  const kept = new Set(largest.map(([queue]) => queue))
  return rows.map((row) => (kept.has(row.queue ?? '') ? row : { ...row, queue: otherLabel }))
}

/**
 * Metrics of dead letters and campaigns. Gauges come from the exact counts of the store and are the same on
 * every server. Counters count the actions of this server only.
 */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { LetterCount } from '../../storage/contract/letters.ts'
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
  campaigns: readonly Readonly<{ state: string }>[]
}>

export async function readLetterFigures(
  storage: Pick<StoreReads, 'countLetters' | 'listQueues' | 'listCampaigns'>,
): Promise<LetterFigures> {
  const [letters, campaigns] = await Promise.all([
    storage.countLetters({ filter: {}, by: ['queue', 'state'] }),
    storage.listCampaigns({ states: unfinished, countMax: campaignsMax }),
  ])
  const queues = letters.length === 0 ? [] : await storage.listQueues({ countMax: queuesMax })
  return { letters, campaigns, classes: new Map(queues.map(({ name, letterClass }) => [name, letterClass])) }
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
  return {
    set: (figures) => {
      letters.reset()
      campaigns.reset()
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

/**
 * Dead letters and campaigns as metrics. What is there now comes from the exact counts of the store, and is the same on
 * every server; what was done is counted by the server that did it.
 */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { LetterCount } from '../storage/contract/letters.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { labelValuesMax, otherLabel } from './labelled-totals.ts'
import { letterStatus } from './letter-status.ts'
import type { LetterTotals } from './letter-totals.ts'

const unfinished = ['freezing', 'canary', 'running', 'paused', 'halted'] as const
const campaignsMax = 1_000
const queuesMax = 10_000

export type LetterFacts = Readonly<{
  letters: readonly LetterCount[]
  classes: ReadonlyMap<string, string>
  campaigns: readonly Readonly<{ state: string }>[]
}>

export async function readLetterFacts(
  storage: Pick<StoreReads, 'countLetters' | 'listQueues' | 'listCampaigns'>,
): Promise<LetterFacts> {
  const [letters, queues, campaigns] = await Promise.all([
    storage.countLetters({ filter: {}, by: ['queue', 'state'] }),
    storage.listQueues({ countMax: queuesMax }),
    storage.listCampaigns({ states: unfinished, countMax: campaignsMax }),
  ])
  return { letters, campaigns, classes: new Map(queues.map(({ name, letterClass }) => [name, letterClass])) }
}

export interface LetterMetrics {
  /** Undefined: they could not be read, and are left out. */
  set(facts: LetterFacts | undefined): void
}

export function createLetterMetrics(registry: Registry, totals: LetterTotals): LetterMetrics {
  const registers = [registry]
  const letters = new Gauge({
    name: 'redrive_letters',
    help: 'Dead letters there now, by dead queue, its class and their status. Exact.',
    labelNames: ['queue', 'class', 'status'],
    registers,
  })
  const campaigns = new Gauge({
    name: 'redrive_campaigns',
    help: 'Campaigns that have not ended, by state.',
    labelNames: ['state'],
    registers,
  })
  const counter = (name: keyof LetterTotals, help: string, label?: string) =>
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
  counter('captured', 'Letters that this server captured from elsewhere, by dead queue.', 'queue')
  counter('redriven', 'Letters that this server sent back: by hand, by campaigns and by policy.')
  counter('refused', 'Letters that this server was to send back and did not, by why.', 'why')
  counter(
    'ended',
    'Redrives that ended through this server, by outcome: resolved, failed, unknown.',
    'outcome',
  )
  counter('discarded', 'Letters that were given up through this server.')
  counter('archived', 'Letters that this server moved to the archive, by dead queue.', 'queue')
  counter('purged', 'Letters that this server removed from the archive for good, by dead queue.', 'queue')

  return {
    set: (facts) => {
      letters.reset()
      campaigns.reset()
      if (facts === undefined) return
      for (const { queue = '', state = 'waiting', count } of inFewQueues(facts.letters)) {
        const letterClass = queue === otherLabel ? otherLabel : (facts.classes.get(queue) ?? '')
        letters.inc({ queue, class: letterClass, status: letterStatus(state) }, count)
      }
      for (const state of unfinished) campaigns.set({ state }, 0)
      for (const { state } of facts.campaigns) campaigns.inc({ state })
    },
  }
}

/** Those with the most letters by themselves, all others together. */
function inFewQueues(rows: readonly LetterCount[]): readonly LetterCount[] {
  const sums = new Map<string, number>()
  for (const { queue = '', count } of rows) sums.set(queue, (sums.get(queue) ?? 0) + count)
  if (sums.size <= labelValuesMax) return rows
  const most = [...sums].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, labelValuesMax)
  const kept = new Set(most.map(([queue]) => queue))
  return rows.map((row) => (kept.has(row.queue ?? '') ? row : { ...row, queue: otherLabel }))
}

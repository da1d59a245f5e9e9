import { describe, expect, it } from 'vitest'
import { findLags, judgeLag } from './lag.ts'

/** The limits of the documentation, docs/watching.md. */
const thresholds = [
  { topic: 'escrow.commands', warning: 100, critical: 500 },
  { topic: 'deal.events', warning: 500, critical: 2_000 },
  { topic: 'deal.deadlines', warning: 50, critical: 200 },
  { topic: 'delivery.commands', warning: 200, critical: 1_000 },
  { topic: 'notifications.outbox', warning: 500, critical: 2_000 },
  { topic: 'reconciliation.triggers', warning: 10, critical: 50 },
]

describe('the limits of lag', () => {
  it.each(thresholds)(
    'a lag of topic $topic is found above $warning and critical above $critical',
    ({ topic, warning, critical }) => {
      const judge = (lag: number) => judgeLag({ topic, lag }, thresholds)?.severity ?? null
      expect([warning, warning + 1, critical, critical + 1].map(judge)).toEqual([
        null,
        'WARNING',
        'WARNING',
        'CRITICAL',
      ])
    },
  )

  it('a topic without a limit is never found, and an entry that ends in * covers the topics that begin so', () => {
    expect(judgeLag({ topic: 'delivery.results', lag: 1e9 }, thresholds)).toBeNull()
    const all = [...thresholds, { topic: '*', warning: 1, critical: 2 }]
    expect(judgeLag({ topic: 'delivery.results', lag: 3 }, all)).toEqual({ severity: 'CRITICAL', limit: 2 })
    expect(judgeLag({ topic: 'deal.events', lag: 3 }, all)).toBeNull()
  })

  it('a finding names the cluster, the group and the topic', () => {
    const lag = { cluster: 'main', group: 'payout', topic: 'escrow.commands', lag: 501 }
    expect(findLags([lag], thresholds, () => 5)).toEqual([
      {
        rule: 'lag',
        severity: 'CRITICAL',
        subject: 'main/payout/escrow.commands',
        namespace: '_system',
        since: 5,
        message: 'group payout of cluster main lags 501 records behind topic escrow.commands, more than 500',
      },
    ])
  })
})

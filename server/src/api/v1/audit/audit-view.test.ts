import { describe, expect, it } from 'vitest'
import { noon } from '../../../../test/make.ts'
import { defaultPolicy } from '../../../core/items/queue.ts'
import { encodeDocument } from '../../../letters/campaigns/document.ts'
import type { CampaignFacts } from '../../../letters/campaigns/state-machine.ts'
import { viewDetails } from './audit-view.ts'

describe('the details of an audit row', () => {
  it('audit details have the names, times and durations of the API', () => {
    expect(
      viewDetails({
        action: 'letters.archive',
        details: { states: ['waiting', 'scheduled', 'dead'], endedBefore: noon, batchSize: 10, letters: 3 },
      }),
    ).toEqual({
      status: ['PENDING', 'DEAD'],
      ended_before: '2026-11-15T12:00:00.000000Z',
      batch_size: 10,
      letters: 3,
    })
    expect(
      viewDetails({
        action: 'letter.redrive',
        details: { target: null, isDeadAllowed: true, letters: 2, refused: { 'no-target': 1 } },
      }),
    ).toEqual({ target: null, include_dead: true, letters: 2, refused: { 'no-target': 1 } })
    expect(
      viewDetails({
        action: 'queue.delete',
        details: { isForced: true, removed: 5, letters: { waiting: 1, scheduled: 2, leased: 1, dead: 1 } },
      }),
    ).toEqual({ force: true, removed: 5, letters: { PENDING: 3, RETRYING: 1, DEAD: 1 } })
  })

  it('audit details show a policy like the queue does', () => {
    const { leaseTimeoutUs, expireTimeoutUs, doneRetentionUs, redrive, retry, isPaused } = defaultPolicy
    const changes = { leaseTimeoutUs, expireTimeoutUs, doneRetentionUs, redrive, retry, isPaused }
    expect(viewDetails({ action: 'queue.update', details: { changes } })).toEqual({
      changes: {
        lease_timeout: '1m0s',
        expire_timeout: '24h0m0s',
        done_retention: '0s',
        redrive: {
          mode: 'manual',
          redrives_max: 3,
          backoff: { kind: 'exponential', delays: ['1m0s', '1h0m0s'], jitter: 0.2 },
        },
        retry: { kind: 'fixed', delays: ['0s'], jitter: 0 },
        is_paused: false,
      },
    })
  })

  it('audit details show a campaign like the campaign does', () => {
    const spec: CampaignFacts['spec'] = {
      name: 'after the fix',
      action: 'redrive',
      selection: { filter: { queues: ['dead'], died: { until: noon }, key: new Uint8Array([255]) } },
      target: null,
      isDeadAllowed: true,
      canaryCount: 5,
      ratePerSecond: 10,
      rampUs: 60_000_000,
      haltRatio: 0.2,
      haltMin: 10,
      limit: null,
      expectedCount: null,
    }
    const kept = JSON.parse(JSON.stringify(encodeDocument({ spec } as CampaignFacts).spec)) as unknown
    expect(viewDetails({ action: 'campaign.create', details: { spec: kept, letters: 0 } })).toEqual({
      name: 'after the fix',
      action: 'redrive',
      ids: null,
      filter: { queue: ['dead'], dead_lettered_until: '2026-11-15T12:00:00.000000Z', key_base64: '/w==' },
      target: null,
      include_dead: true,
      canary_count: 5,
      rate_per_second: 10,
      ramp: '1m0s',
      halt_ratio: 0.2,
      halt_min: 10,
      limit: null,
      expected_count: null,
      letters: 0,
    })
  })
})

import { expect, it } from 'vitest'
import type { Campaign } from '../../../client/src/index.ts'
import { pollUntil } from '../http/poll-until.ts'
import { describeLettersServers } from './servers.ts'
import { createLetters } from './worker.ts'

describeLettersServers('the work of an operator', (api) => {
  it('an operator finds a group, previews a campaign, sends a canary and the rest, and gets a report', async () => {
    const { queue, dead } = await api.createQueues()
    const { client } = api
    await createLetters(
      api,
      queue,
      Array.from({ length: 25 }, (_, n) => `{"order":${n}}`),
      'order 4711: vat missing',
    )
    await createLetters(
      api,
      queue,
      Array.from({ length: 15 }, (_, n) => `{"order":${n}}`),
      'connection refused',
    )

    const { groups } = await client.listGroups({ queue: dead, status: 'PENDING' })
    expect(groups.map(({ count }) => count)).toEqual([25, 15])
    const group = groups[0]?.id ?? 0
    const { letters, total } = await client.listLetters({ group_id: group, limit: 5 })
    expect(total).toBe(25)
    const letter = await client.getLetter(letters[0]?.id ?? '', { payloadForm: 'json' })
    expect(letter).toMatchObject({
      failures: [{ message: 'order 4711: vat missing' }],
      payload: { json: { order: expect.any(Number) } },
    })

    const selection = { action: 'redrive', filter: { group_id: group } } as const
    const preview = await client.previewCampaign(selection)
    expect(preview).toMatchObject({ count: 25, is_exact: true, targets: [{ queue, count: 25 }] })
    const { id } = await client.createCampaign({
      ...selection,
      name: 'vat',
      reason: 'release 7 computes it',
      canary_count: 5,
      rate_per_second: 1_000,
    })
    const canary = await pollUntil(
      () => client.getCampaign(id),
      ({ counts }) => counts.sent === 5,
    )
    expect(canary).toMatchObject({ state: 'canary', size: 25, counts: { pending: 20 } })

    let processed = 0
    const worker = client.work(queue, async () => {
      processed++
    })
    let report: Campaign = canary
    for await (const campaign of client.watchCampaign(id)) report = campaign
    await worker.stop()
    expect(report).toMatchObject({
      state: 'done',
      counts: { pending: 0, sent: 0, resolved: 25, failed: 0, unknown: 0, skipped: 0 },
    })
    expect(processed).toBe(25)
    expect(await client.countLetters({ queue: dead, by: ['status', 'group_id'] })).toMatchObject({
      counts: [
        { count: 25, status: 'RESOLVED', group_id: group },
        { count: 15, status: 'PENDING' },
      ],
    })
    expect(api.lines.filter(({ level }) => level === 'error')).toEqual([])
  })

  it('a campaign halts automatically when most letters fail again, and continues when an operator resumes it', async () => {
    const { queue, dead } = await api.createQueues()
    const { client } = api
    await createLetters(
      api,
      queue,
      Array.from({ length: 30 }, (_, n) => String(n)),
      'not fixed',
    )
    const { id } = await client.createCampaign({
      name: 'too early',
      reason: 'hope',
      action: 'redrive',
      filter: { queue: dead },
      canary_count: 10,
      halt_ratio: 0.3,
      halt_min: 5,
    })
    let isFixed = false
    const worker = client.work(queue, async () => {
      if (!isFixed) throw new Error('not fixed')
    })
    const halted = await pollUntil(
      () => client.getCampaign(id),
      ({ state }) => state === 'halted',
    )
    expect(halted.state_reason).not.toBe('')
    expect(halted.counts.pending).toBeGreaterThan(0)
    isFixed = true
    await client.resumeCampaign(id, { reason: 'it is fixed now' })
    const done = await pollUntil(
      () => client.getCampaign(id),
      ({ is_ended }) => is_ended,
    )
    await worker.stop()
    const { resolved, failed } = done.counts
    expect(resolved + failed).toBe(30)
    expect(resolved).toBeGreaterThanOrEqual(20)
  })
})

import { expect, it } from 'vitest'
import { pollUntil } from '../http/poll-until.ts'
import { createEnvelope, describeLettersServers } from './servers.ts'
import { complete, declareDead, lease } from './worker.ts'

describeLettersServers('the metrics of letters', (api) => {
  const metrics = async () => (await fetch(`${api.url}/metrics`)).text()

  it('metrics count letters by status, and captures, redrives and discards', async () => {
    const { queue, dead } = await api.createQueues({ letter_class: 'financial' })
    const letters = Array.from({ length: 6 }, (_, n) => createEnvelope(queue, { source_id: `s${n}` }))
    const [a, b, c, d] = await api.capture(dead, ...letters)
    await api.capture(dead, ...letters)
    const [sent, failing] = [[a, b], [c]]
    await api.post('/api/v1/letters/redrive', { ids: sent })
    await complete(api, queue, (await lease(api, queue, 2)).slice(0, 1))
    await api.post('/api/v1/letters/redrive', { ids: failing })
    await declareDead(api, queue, await lease(api, queue), 'again')
    await api.post('/api/v1/letters/redrive', { ids: sent })
    await api.post('/api/v1/letters/discard', { ids: [d], reason: 'test' })

    const text = await metrics()
    const gauge = (status: string) =>
      `redrive_letters{queue="${dead}",letter_class="financial",status="${status}"}`
    expect(text).toContain(`${gauge('PENDING')} 3`)
    expect(text).toContain(`${gauge('RETRYING')} 1`)
    expect(text).toContain(`${gauge('RESOLVED')} 1`)
    expect(text).toContain(`${gauge('DISCARDED')} 1`)
    expect(text).toContain(`redrive_letters_captured_total{queue="${dead}"} 6`)
    expect(text).toMatch(/^redrive_letters_redriven_total 3$/m)
    expect(text).toContain('redrive_letters_refused_total{refusal="redriving"} 1')
    expect(text).toContain('redrive_letters_refused_total{refusal="resolved"} 1')
    expect(text).toContain('redrive_redrives_ended_total{outcome="resolved"} 1')
    expect(text).toContain('redrive_redrives_ended_total{outcome="failed"} 1')
    expect(text).toMatch(/^redrive_letters_discarded_total 1$/m)
  })

  it('metrics count campaigns in progress and archived letters', async () => {
    const { queue, dead } = await api.createQueues()
    await api.capture(dead, ...Array.from({ length: 3 }, () => createEnvelope(queue)))
    const campaign = { action: 'redrive', filter: { queue: dead }, name: 'n', reason: 'r', canary_count: 1 }
    const { body } = await api.post('/api/v1/campaigns', campaign)
    await pollUntil(metrics, (text) => text.includes('redrive_campaigns{state="canary"} 1'))
    await api.post(`/api/v1/campaigns/${body.id}/cancel`, { reason: 'enough' })
    expect(await metrics()).toContain('redrive_campaigns{state="canary"} 0')
    const [id] = await api.capture(dead, createEnvelope(queue))
    await api.post('/api/v1/letters/discard', { ids: [id], reason: 'test' })
    await api.setClock({ advance: '744h' })
    expect(await metrics()).toContain(`redrive_letters_archived_total{queue="${dead}"} 1`)
    await api.setClock({ resume: true })
  })
})

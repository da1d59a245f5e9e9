import { expect, it } from 'vitest'
import { pollUntil } from '../http/poll-until.ts'
import { createEnvelope, describeLettersServers } from './servers.ts'
import { declareDead, lease } from './worker.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'

describeLettersServers('one message', (api) => {
  const find = async (query: string): Promise<string[]> =>
    (await api.get(`/api/v1/letters?${query}`)).body.letters.map(({ id }: { id: string }) => id)

  it('a dead message is found by the id that produce answered and by the id of its retry', async () => {
    const { queue } = await api.createQueues()
    await api.patch(`/api/v1/queues/${queue}`, {
      policy: { attempts_max: 9, retry: { kind: 'fixed', delays: ['0s'] } },
    })
    const produced = await api.post(`/api/v1/queues/${queue}/items`, { items: [{ payload: { text: 'a' } }] })
    const [first] = await lease(api, queue)
    if (first === undefined) throw new Error('nothing was leased')
    await api.client.retry(queue, first.partition, [{ id: first.id }])
    const [second] = await lease(api, queue)
    if (second === undefined) throw new Error('nothing was leased after the retry')
    expect(second.id).not.toBe(first.id)
    await declareDead(api, queue, [second], 'it failed')
    const [letterId = ''] = await find(`id=${second.id}`)
    expect(letterId).not.toBe('')
    expect(JSON.stringify(produced.body)).toContain(first.id)
    expect(await find(`id=${first.id}`)).toEqual([letterId])
    expect(await find(`id=${letterId}&id=${first.id}`)).toEqual([letterId])
    expect((await api.get(`/api/v1/letters/${first.id}`)).body.id).toBe(letterId)

    const { letters } = (await api.post('/api/v1/letters/redrive', { ids: [letterId] })).body
    expect(await find(`id=${letters[0].target.id}`)).toEqual([letterId])
    expect(await find(`id=${'0'.repeat(27)}`)).toEqual([])
    expect((await api.get(`/api/v1/letters/${'0'.repeat(27)}`)).status).toBe(404)
  })

  it('a message is found by source id, trace id and text in its payload, and exported and archived so', async () => {
    const { queue, dead } = await api.createQueues()
    const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` }
    const [one = '', two = ''] = await api.capture(
      dead,
      createEnvelope(queue, { source_id: 'job-1', headers, original_value: '{"customer":"Ann Smith"}' }),
      createEnvelope(queue, { source_id: 'job-2', original_value: 'Bob' }),
    )
    expect(await find('source_id=job-1')).toEqual([one])
    expect(await find('id=job-2')).toEqual([two])
    expect(await find(`trace_id=${traceId.toUpperCase()}`)).toEqual([one])
    expect(await find('payload_contains=ANN%20smith')).toEqual([one])
    expect(await find(`payload_contains=ann&queue=${dead}&source_id=job-2`)).toEqual([])
    const exported = await api.client.exportLetters({ payload_contains: 'ann smith' }).next()
    expect(exported.value).toMatchObject({ id: one })
    const invalid = await api.get('/api/v1/letters?trace_id=xyz')
    expect(invalid).toMatchObject({ status: 400, body: { error: { code: 'BAD_REQUEST' } } })
    expect(JSON.stringify(invalid.body)).toContain('32 hexadecimal digits')

    await api.post('/api/v1/letters/discard', { ids: [one], reason: 'done' })
    await api.setClock({ advance: '800h' })
    const archived = async (query: string) =>
      (await api.get(`/api/v1/archive?${query}`)).body.letters.map(({ id }: { id: string }) => id)
    await pollUntil(
      () => archived('source_id=job-1'),
      (ids) => ids.length > 0,
    )
    for (const query of ['id=job-1', `id=${one}`, `trace_id=${traceId}`, 'payload_contains=smith']) {
      expect(await archived(query), query).toEqual([one])
    }
  })

  it('a campaign shows its filter by id, and its report has the failure text per cause', async () => {
    const { queue, dead } = await api.createQueues()
    const ids = await api.capture(
      dead,
      ...['a', 'b', 'c'].map((source_id) => createEnvelope(queue, { source_id })),
    )
    const { body: campaign } = await api.post('/api/v1/campaigns', {
      action: 'redrive',
      filter: { id: ids },
      name: 'again',
      reason: 'a test',
      canary_count: 0,
    })
    expect(campaign.filter.id.toSorted()).toEqual(ids.toSorted())
    const messages = ['card 17 refused', 'card 18 refused', 'disk full']
    for (const message of messages) {
      const [item] = await pollUntil(
        () => lease(api, queue),
        (items) => items.length > 0,
      )
      if (item !== undefined) await declareDead(api, queue, [item], message)
    }
    const report = await pollUntil(
      () => api.client.getCampaign(campaign.id),
      ({ counts }) => counts.failed === 3,
    )
    expect(report.causes).toMatchObject([
      { title: expect.stringContaining('refused'), error_class: 'WorkerError', count: 2 },
      { title: expect.stringContaining('disk full'), message: 'disk full', count: 1 },
    ])
    expect(report.causes[0]?.message).toMatch(/^card 1[78] refused$/)
    expect(ids).toContain(report.causes[0]?.sample_id)
    expect(report.causes_examined_count).toBe(3)
  })

  it('the audit log is filtered by time', async () => {
    const { queue, dead } = await api.createQueues()
    const ids = await api.capture(dead, createEnvelope(queue), createEnvelope(queue))
    const now = new Date((await api.setClock({ advance: '0s' })) as string)
    const at = (minutes: number) => new Date(now.getTime() + minutes * 60_000).toISOString()
    await api.post('/api/v1/letters/discard', { ids: [ids[0]], reason: 'first' })
    await api.setClock({ advance: '1h' })
    await api.post('/api/v1/letters/discard', { ids: [ids[1]], reason: 'second' })
    const targets = async (query: string) => {
      const { body } = await api.get(`/api/v1/audit?action=letter.discard&${query}`)
      return body.entries.map(({ target }: { target: string }) => target)
    }
    expect(await targets(`after=${at(-1)}&before=${at(30)}`)).toEqual([ids[0]])
    expect(await targets(`after=${at(30)}`)).toEqual([ids[1]])
    const page = await api.get(`/api/v1/audit?action=letter.discard&after=${at(-1)}&limit=1`)
    expect(page.body.entries[0].target).toBe(ids[1])
    expect(await targets(`after=${at(-1)}&limit=1&cursor=${page.body.next_cursor}`)).toEqual([ids[0]])
    expect((await api.get('/api/v1/audit?after=yesterday')).status).toBe(400)
    expect((await api.get(`/api/v1/audit?after=${at(1)}&before=${at(0)}`)).status).toBe(400)
  })
})

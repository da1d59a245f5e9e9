/** People decide about groups over HTTP. */
import { expect, it } from 'vitest'
import { createEnvelope, describeLettersServers } from './servers.ts'

const failing = (queue: string, message: string) =>
  createEnvelope(queue, { error_details: { exception_class: 'Error', message } })

describeLettersServers('decisions about groups', (api) => {
  it('a group is acknowledged, muted, resolved and reopened, each with a note and an audit row', async () => {
    const { queue, dead } = await api.createQueues()
    await api.capture(dead, failing(queue, 'no route'))
    const [{ id }] = (await api.get(`/api/v1/groups?queue=${dead}`)).body.groups
    const act = (action: string, body: object) => api.post(`/api/v1/groups/${id}/${action}`, body)

    const acknowledged = await act('acknowledge', { note: 'I look at it', reason: 'on duty' })
    expect(acknowledged.status).toBe(200)
    expect(acknowledged.body).toMatchObject({
      id,
      count: 1,
      lifecycle: { state: 'acknowledged', note: 'I look at it', muted_until: null },
      sample: { group_id: id },
    })
    const until = '2099-01-01T00:00:00.000000Z'
    expect((await act('mute', { until })).body.lifecycle).toMatchObject({
      state: 'muted',
      muted_until: until,
    })
    expect((await act('resolve', {})).body.lifecycle).toMatchObject({ state: 'resolved', muted_until: null })
    await api.capture(dead, failing(queue, 'no route'))
    expect((await api.get(`/api/v1/groups/${id}`)).body).toMatchObject({
      count: 2,
      lifecycle: { state: 'regressed' },
    })
    expect((await act('reopen', {})).body.lifecycle).toMatchObject({ state: 'open' })
    const { entries } = (await api.get(`/api/v1/audit?target=group/${id}`)).body
    expect(entries.map(({ action }: { action: string }) => action)).toEqual([
      'group.reopen',
      'group.resolve',
      'group.mute',
      'group.acknowledge',
    ])
    expect(entries[3]).toMatchObject({ reason: 'on duty', details: { note: 'I look at it' } })
    expect(entries[2].details.until).toBe('2099-01-01T00:00:00.000Z')
  })

  it('groups are listed by state', async () => {
    const { queue, dead } = await api.createQueues()
    await api.capture(dead, failing(queue, 'kept open'), failing(queue, 'decided'))
    const { groups } = (await api.get(`/api/v1/groups?queue=${dead}`)).body
    const decided = groups.find(({ title }: { title: string }) => title === 'decided')
    await api.post(`/api/v1/groups/${decided.id}/resolve`)
    const titles = async (states: string) =>
      (await api.get(`/api/v1/groups?queue=${dead}&${states}`)).body.groups.map(
        ({ title }: { title: string }) => title,
      )
    expect(await titles('lifecycle=resolved')).toEqual(['decided'])
    expect(await titles('lifecycle=open')).toEqual(['kept open'])
    expect((await titles('lifecycle=open&lifecycle=resolved')).sort()).toEqual(['decided', 'kept open'])
    expect((await api.get('/api/v1/groups?lifecycle=lost')).status).toBe(400)
  })

  it('a mute that ends in the past, a note that cannot be stored, and an unknown group are refused', async () => {
    const { queue, dead } = await api.createQueues()
    await api.capture(dead, failing(queue, 'refusals'))
    const [{ id }] = (await api.get(`/api/v1/groups?queue=${dead}`)).body.groups
    const mute = (until: unknown) => api.post(`/api/v1/groups/${id}/mute`, { until })
    for (const until of ['2001-01-01T00:00:00Z', 'tomorrow', '', 7, null, undefined]) {
      expect([until, (await mute(until)).status]).toEqual([until, 400])
    }
    const note = (text: unknown) => api.post(`/api/v1/groups/${id}/resolve`, { note: text })
    for (const text of ['a\u0000b', 'x'.repeat(1_001), 7]) expect((await note(text)).status).toBe(400)
    expect((await api.post('/api/v1/groups/999999/resolve')).body).toMatchObject({
      error: { code: 'GROUP_NOT_FOUND' },
    })
    expect((await api.get(`/api/v1/groups/${id}`)).body.lifecycle.state).toBe('open')
  })
})

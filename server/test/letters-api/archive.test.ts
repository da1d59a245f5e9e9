import { expect, it } from 'vitest'
import { until } from '../http/poll.ts'
import { type Body, describeServers, envelope, noonText } from './servers.ts'

describeServers('the archive', (api) => {
  it('has what retention took, and gives it back', async () => {
    await api.clock({ now: noonText })
    const { queue, dead } = await api.queues()
    const ids = await api.capture(
      dead,
      ...['a', 'b', 'c', 'd'].map((source_id) => envelope(queue, { source_id, original_value: source_id })),
    )
    await api.post('/api/v1/letters/discard', { ids: ids.slice(0, 3), reason: 'old' })
    await api.clock({ advance: '721h' })
    const list = async () => (await api.get(`/api/v1/archive?queue=${dead}`)).body.letters
    const archived = await until(list, (letters) => letters.length === 3)
    expect(archived.map(({ id }: Body) => id).toSorted()).toEqual(ids.slice(0, 3).toSorted())
    expect(archived[0]).toMatchObject({ status: 'DISCARDED', archived_at: '2030-12-15T13:00:00.000000Z' })
    expect((await api.get(`/api/v1/letters?queue=${dead}`)).body).toMatchObject({
      total: 1,
      letters: [{ id: ids[3] }],
    })

    const first = await api.get(`/api/v1/archive?queue=${dead}&limit=2`)
    const rest = await api.get(`/api/v1/archive?queue=${dead}&limit=2&cursor=${first.body.next_cursor}`)
    expect([...first.body.letters, ...rest.body.letters].map(({ id }: Body) => id)).toEqual(
      archived.map(({ id }: Body) => id),
    )

    for (const path of ['letters', 'archive']) {
      const { body } = await api.get(`/api/v1/${path}/${ids[0]}`)
      expect(body).toMatchObject({
        id: ids[0],
        archived_at: '2030-12-15T13:00:00.000000Z',
        payload: { value: 'a' },
      })
    }
    expect((await api.get(`/api/v1/archive/${ids[3]}`)).status).toBe(404)

    const sent = await api.post('/api/v1/letters/redrive', { ids: [ids[0]] })
    expect(sent.body.letters).toMatchObject([{ is_started: false, why: 'archived' }])
    const given = { ids: [ids[0]], reason: 'obsolete' }
    const discarded = await api.post('/api/v1/letters/discard', given)
    expect(discarded.body.letters).toMatchObject([{ is_done: false, why: 'archived' }])
    const one = await api.post(`/api/v1/letters/${ids[0]}/redrive`, {})
    expect(one).toMatchObject({
      status: 409,
      body: { error: { message: expect.stringContaining('it is in the archive: restore it first') } },
    })
    const preview = await api.post('/api/v1/campaigns/preview', { action: 'redrive', ids: [ids[0]] })
    expect(preview.body.warnings).toContain('1 of the letters named will be skipped: archived')
    const asked = [ids[0], ids[3], '0'.repeat(27)]
    const { body } = await api.post('/api/v1/archive/restore', { ids: asked, reason: 'needed again' })
    expect(body).toMatchObject({
      restored: 1,
      refused: 2,
      letters: [
        { id: ids[0], is_done: true },
        { id: ids[3], is_done: false, why: 'missing' },
        { is_done: false, why: 'missing' },
      ],
    })
    const back = await api.get(`/api/v1/letters/${ids[0]}`)
    expect(back.body).toMatchObject({ status: 'PENDING', archived_at: null, discard_reason: '' })
    expect(back.body.audit[0]).toMatchObject({ action: 'letter.restore', reason: 'needed again' })
    expect((await api.post('/api/v1/letters/redrive', { ids: [ids[0]] })).body.started).toBe(1)

    const taken = await api.capture(dead, envelope(queue, { source_id: 'b' }))
    const refused = await api.post('/api/v1/letters/restore', { ids: [ids[1]] })
    expect(taken).not.toContain(ids[1])
    expect(refused.body.letters).toMatchObject([{ is_done: false, why: 'taken' }])
    await api.clock({ resume: true })
  })
})

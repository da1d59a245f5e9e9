import { expect, it } from 'vitest'
import { pollUntil } from '../http/poll-until.ts'
import { type Body, createEnvelope, describeLettersServers, noonText } from './servers.ts'

describeLettersServers('the archive', (api) => {
  it('retention moves ended letters to the archive, and a restore moves them back', async () => {
    await api.setClock({ now: noonText })
    const { queue, dead } = await api.createQueues()
    const ids = await api.capture(
      dead,
      ...['a', 'b', 'c', 'd'].map((source_id) =>
        createEnvelope(queue, { source_id, original_value: source_id }),
      ),
    )
    await api.post('/api/v1/letters/discard', { ids: ids.slice(0, 3), reason: 'old' })
    await api.setClock({ advance: '721h' })
    const list = async () => (await api.get(`/api/v1/archive?queue=${dead}`)).body.letters
    const archived = await pollUntil(list, (letters) => letters.length === 3)
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
        payload: { text: 'a' },
      })
    }
    expect((await api.get(`/api/v1/archive/${ids[3]}`)).status).toBe(404)

    const sent = await api.post('/api/v1/letters/redrive', { ids: [ids[0]] })
    expect(sent.body.letters).toMatchObject([{ is_started: false, refusal: 'archived' }])
    const given = { ids: [ids[0]], reason: 'obsolete' }
    const discarded = await api.post('/api/v1/letters/discard', given)
    expect(discarded.body.letters).toMatchObject([{ is_done: false, refusal: 'archived' }])
    const one = await api.post(`/api/v1/letters/${ids[0]}/redrive`, {})
    expect(one).toMatchObject({
      status: 409,
      body: { error: { message: expect.stringContaining('the letter is archived; restore it first') } },
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
        { id: ids[3], is_done: false, refusal: 'not-discarded' },
        { is_done: false, refusal: 'missing' },
      ],
    })
    const back = await api.get(`/api/v1/letters/${ids[0]}`)
    expect(back.body).toMatchObject({ status: 'PENDING', archived_at: null, discard_reason: '' })
    expect(back.body.audit[0]).toMatchObject({ action: 'letter.restore', reason: 'needed again' })
    expect((await api.post('/api/v1/letters/redrive', { ids: [ids[0]] })).body.started).toBe(1)

    const taken = await api.capture(dead, createEnvelope(queue, { source_id: 'b' }))
    const refused = await api.post('/api/v1/letters/restore', { ids: [ids[1]] })
    expect(taken).not.toContain(ids[1])
    expect(refused.body.letters).toMatchObject([{ is_done: false, refusal: 'taken' }])
    await api.setClock({ resume: true })
  })

  it('the archive is searched by the same conditions as letters, in pages', async () => {
    await api.setClock({ now: '2031-01-01T12:00:00Z' })
    const { queue, dead } = await api.createQueues()
    const letter = (customer: string, index: number) =>
      createEnvelope(queue, {
        source_id: `${customer}-${index}`,
        original_key: customer,
        error_details: { exception_class: index === 0 ? 'Declined' : 'Timeout', message: `no ${index}` },
      })
    const given = ['ann', 'bob', 'eve'].flatMap((customer) => [0, 1].map((index) => letter(customer, index)))
    const ids = await api.capture(dead, ...given)
    await api.post('/api/v1/letters/discard', { ids, reason: 'old' })
    await api.setClock({ advance: '721h' })
    const find = async (query: string) => (await api.get(`/api/v1/archive?queue=${dead}&${query}`)).body
    await pollUntil(
      () => find('limit=10'),
      ({ letters }) => letters.length === 6,
    )
    const listIds = ({ letters }: Body): string[] => letters.map(({ id }: Body) => id).toSorted()
    const wanted = (...indexes: number[]) => indexes.map((index) => ids[index]).toSorted()
    const cases: readonly [query: string, ids: readonly (string | undefined)[]][] = [
      ['key_text=bob', wanted(2, 3)],
      [`key_base64=${Buffer.from('bob').toString('base64')}&error_class=Timeout`, wanted(3)],
      ['source_id=ann-1&source_id=eve-0', wanted(1, 4)],
      ['error_class=Declined', wanted(0, 2, 4)],
      ['status=DISCARDED', wanted(0, 1, 2, 3, 4, 5)],
      ['status=RESOLVED', []],
      ['message=NO+1', wanted(1, 3, 5)],
      ['archived_from=2031-01-31T00:00:00Z&archived_until=2031-02-01T00:00:00Z', wanted(0, 1, 2, 3, 4, 5)],
      ['archived_until=2031-01-31T00:00:00Z', []],
      ['dead_lettered_from=2031-01-01T12:00:01Z', []],
    ]
    for (const [query, found] of cases) {
      const body = await find(query)
      expect([query, listIds(body)]).toEqual([query, found])
      expect(body).toMatchObject({ next_cursor: null, is_complete: true })
    }
    const [{ group_id, failure }] = (await find('key_text=ann&error_class=Declined')).letters
    expect(listIds(await find(`group_id=${group_id}&error_code=${failure.error_code}`))).toEqual(
      wanted(0, 2, 4),
    )

    const first = await find('error_class=Timeout&limit=2')
    const rest = await find(`error_class=Timeout&limit=2&cursor=${first.next_cursor}`)
    expect([first.letters.length, rest.letters.length, rest.next_cursor]).toEqual([2, 1, null])
    expect(listIds({ letters: [...first.letters, ...rest.letters] })).toEqual(wanted(1, 3, 5))
    await api.setClock({ resume: true })
  })

  it('the archive refuses invalid conditions and reports all of them', async () => {
    const refused = await api.get(
      '/api/v1/archive?status=LOST&archived_from=soon&dead_lettered_from=2031-01-02T00:00:00Z&dead_lettered_until=2031-01-01T00:00:00Z',
    )
    expect(refused.status).toBe(400)
    expect(refused.body.error.details.map(({ field }: Body) => field).toSorted()).toEqual([
      'query.archived_from',
      'query.dead_lettered_from',
      'query.status',
    ])
    expect((await api.get('/api/v1/archive?json=$.a=1')).status).toBe(400)
  })
})

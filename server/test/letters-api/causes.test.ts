import { expect, it } from 'vitest'
import { pollUntil } from '../http/poll-until.ts'
import { type Body, createEnvelope, describeLettersServers } from './servers.ts'

const failing = (queue: string, message: string) =>
  createEnvelope(queue, { error_details: { exception_class: 'HttpError', message } })

describeLettersServers('causes over all dead queues', (api) => {
  it('the API shows one cause with its counts per queue, and a campaign and the letter filter take it', async () => {
    const [a, b] = [await api.createQueues(), await api.createQueues()]
    const url = 'https://api.partner.example/v1/orders/'
    await api.capture(
      a.dead,
      failing(a.queue, `HTTP 503 from ${url}17`),
      failing(a.queue, `HTTP 503 from ${url}18`),
    )
    await api.capture(a.dead, failing(a.queue, `HTTP 404 from ${url}19`))
    await api.capture(b.dead, failing(b.queue, `HTTP 503 from ${url}20`))

    const query = `queue=${a.dead}&queue=${b.dead}`
    const { body } = await api.get(`/api/v1/causes?${query}`)
    expect(body.next_cursor).toBeNull()
    expect(body.causes.map(({ title, count }: Body) => [title, count])).toEqual([
      ['HTTP 503 from https://api.partner.example/v1/orders/<id>', 3],
      ['HTTP 404 from https://api.partner.example/v1/orders/<id>', 1],
    ])
    const [cause] = body.causes
    expect(cause).toMatchObject({
      slug: 'http_503',
      error_class: 'HttpError',
      statuses: { PENDING: 3 },
      queue_count: 2,
      queues: [
        { queue: a.dead, count: 2 },
        { queue: b.dead, count: 1 },
      ],
    })
    expect(cause.trend.counts.at(-1)).toBe(3)
    const first = await api.get(`/api/v1/causes?${query}&limit=1`)
    const next = await api.get(`/api/v1/causes?${query}&limit=1&cursor=${first.body.next_cursor}`)
    expect([first, next].map((page) => page.body.causes[0].count)).toEqual([3, 1])

    const one = await api.client.getCause(cause.id)
    expect(one).toMatchObject({ count: 3, sample: { id: cause.sample_id, queue: b.dead } })
    const letters = await api.get(`/api/v1/letters?cause_id=${cause.id}`)
    expect(letters.body).toMatchObject({ total: 3 })
    const selection = { action: 'discard', filter: { cause_id: cause.id } }
    const preview = await api.post('/api/v1/campaigns/preview', selection)
    expect(preview.body).toMatchObject({ count: 3, is_exact: true })
    const created = await api.post('/api/v1/campaigns', { name: 'c', reason: 'r', ...selection })
    expect(created.body).toMatchObject({ filter: { cause_id: [cause.id] } })
    const report = async () => (await api.get(`/api/v1/campaigns/${created.body.id}`)).body
    expect((await pollUntil(report, ({ state }) => state === 'done')).counts).toMatchObject({ discarded: 3 })
    expect((await api.get(`/api/v1/letters?${query}&status=PENDING`)).body).toMatchObject({ total: 1 })
    expect(await api.get('/api/v1/causes/unknown')).toMatchObject({
      status: 404,
      body: { error: { code: 'CAUSE_NOT_FOUND' } },
    })
  })

  it('merged groups answer under each of their ids, pinned titles stay, and every change is audited', async () => {
    const { queue, dead } = await api.createQueues()
    await api.capture(dead, failing(queue, 'the lake froze'), failing(queue, 'the lake froze'))
    await api.capture(dead, failing(queue, 'ice on the pier'))
    const [into, merged] = (await api.get(`/api/v1/groups?queue=${dead}`)).body.groups
    const result = await api.client.mergeGroups(into.id, [merged.id], { reason: 'both are winter' })
    expect(result).toMatchObject({ id: into.id, count: 3, merged_ids: [merged.id] })
    const pinned = await api.client.updateGroup(merged.id, { title: 'Winter' }, { reason: 'clearer' })
    expect(pinned).toMatchObject({ id: into.id, title: 'Winter', is_title_pinned: true })
    expect((await api.get(`/api/v1/groups/${merged.id}`)).body).toMatchObject({ id: into.id, count: 3 })
    const { body } = await api.get(`/api/v1/letters?group_id=${merged.id}`)
    expect(body.total).toBe(3)
    expect(new Set(body.letters.map(({ group_id }: Body) => group_id))).toEqual(new Set([into.id]))
    const audit = (await api.get(`/api/v1/audit?target=group/${into.id}`)).body.entries
    expect(audit.map(({ action, reason }: Body) => [action, reason])).toEqual([
      ['group.pin-title', 'clearer'],
      ['group.merge', 'both are winter'],
    ])
    const cause = await api.client.updateCause(into.cause_id, { title: null })
    expect(cause).toMatchObject({ title: 'the lake froze', is_title_pinned: false })
  })

  it('causes of several queues are merged, and groups of several queues are not', async () => {
    const [a, b] = [await api.createQueues(), await api.createQueues()]
    await api.capture(a.dead, failing(a.queue, 'tape is worn out'))
    await api.capture(b.dead, failing(b.queue, 'reel is stuck'))
    const groups = await Promise.all(
      [a, b].map(async ({ dead }) => (await api.get(`/api/v1/groups?queue=${dead}`)).body.groups[0]),
    )
    const refused = await api.post(`/api/v1/groups/${groups[0].id}/merge`, { group_ids: [groups[1].id] })
    expect(refused).toMatchObject({ status: 400 })
    const merged = await api.client.mergeCauses(groups[0].cause_id, [groups[1].cause_id])
    expect(merged).toMatchObject({ id: groups[0].cause_id, count: 2, queue_count: 2 })
    expect((await api.client.getCause(groups[1].cause_id)).id).toBe(groups[0].cause_id)
    expect((await api.get(`/api/v1/causes?cause_id=${groups[1].cause_id}`)).body.causes).toHaveLength(1)
  })
})

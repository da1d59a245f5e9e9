import { expect, it } from 'vitest'
import { type Body, createEnvelope, describeLettersServers } from './servers.ts'

describeLettersServers('the audit log', (api) => {
  it('the audit log lists changes with actor, target and reason, newest first, in pages', async () => {
    const { queue, dead } = await api.createQueues()
    const ids = await api.capture(dead, ...Array.from({ length: 3 }, () => createEnvelope(queue)))
    await api.post('/api/v1/letters/discard', { ids, reason: 'none is needed' })
    const { body } = await api.get(`/api/v1/audit?target=${ids[1]}`)
    expect(body).toMatchObject({
      entries: [
        {
          action: 'letter.discard',
          actor: 'anonymous',
          target: ids[1],
          reason: 'none is needed',
          details: { letters: 3 },
        },
      ],
      next_cursor: null,
      is_complete: true,
    })
    expect(body.entries[0].request_id).not.toBe('')

    const seen: Body[] = []
    let cursor = ''
    do {
      const page = await api.get(`/api/v1/audit?action=letter.discard&limit=2${cursor}`)
      seen.push(...page.body.entries)
      cursor = page.body.next_cursor === null ? '' : `&cursor=${page.body.next_cursor}`
    } while (cursor !== '')
    expect(seen.map(({ target }) => target).toSorted()).toEqual(ids.toSorted())
    expect(seen.map(({ id }) => id)).toEqual(seen.map(({ id }) => id).toSorted((a, b) => b - a))
  })

  it('audit details have the names of the API, and the letters of a deleted queue by status', async () => {
    const { queue, dead } = await api.createQueues({ letter_class: 'financial' })
    const [id = ''] = await api.capture(
      dead,
      createEnvelope(queue),
      createEnvelope(queue),
      createEnvelope(queue),
    )
    await api.post('/api/v1/letters/redrive', { ids: [id], include_dead: true })
    const details = async (target: string) =>
      (await api.get(`/api/v1/audit?target=${target}&limit=1`)).body.entries[0].details
    expect(await details(id)).toEqual({ target: null, include_dead: true, queue, number: 1, letters: 1 })

    const clear = { queue_name: dead, queue: true }
    const refused = await api.post('/v1/queue.clear', clear)
    expect(refused).toMatchObject({
      status: 400,
      body: { message: `queue ${dead} is of class financial and holds 2 open dead letters` },
    })
    await api.post('/v1/queues.update', { queue_name: queue, dead_queue: '' })
    const gone = { queue_name: dead }
    expect((await api.post('/v1/queues.delete', gone)).status).toBe(400)
    expect((await api.get(`/api/v1/letters?queue=${dead}`)).body.total).toBe(3)

    expect((await api.post('/v1/queue.clear', { ...clear, destructive: true })).status).toBe(200)
    expect(await details(dead)).toMatchObject({ removed: 0, discarded: { PENDING: 2 }, kept: 1 })
    expect((await api.post('/v1/queues.delete', { ...gone, force: true })).status).toBe(200)
    expect(await details(dead)).toEqual({
      force: true,
      removed: 3,
      letters: { RETRYING: 1, DISCARDED: 2 },
    })
  })

  it('audit rows have the address of the client, and are found by request and namespace', async () => {
    const { dead } = await api.createQueues()
    const { body } = await api.get(`/api/v1/audit?target=${dead}`)
    const [row] = body.entries
    expect(row).toMatchObject({
      actor: 'anonymous',
      key_prefix: null,
      address: expect.stringMatching(/127\.0\.0\.1|::1/),
      namespace: '_system',
      outcome: 'done',
    })
    const found = await api.get(`/api/v1/audit?request_id=${row.request_id}&namespace=_system`)
    expect(found.body.entries.map(({ id }: Body) => id)).toContain(row.id)
    const elsewhere = await api.get(`/api/v1/audit?request_id=${row.request_id}&namespace=elsewhere`)
    expect(elsewhere.body.entries).toEqual([])
  })

  it('the audit log is exported as lines of JSON, with a last line that reports its end', async () => {
    const { dead } = await api.createQueues()
    const response = await fetch(`${api.url}/api/v1/audit/export?target=${dead}`)
    expect(response.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
    const lines = (await response.text())
      .trimEnd()
      .split('\n')
      .map((line): Body => JSON.parse(line))
    const { body } = await api.get(`/api/v1/audit?target=${dead}`)
    expect(lines).toEqual([...body.entries, { end: { is_complete: true, entries: body.entries.length } }])
    const limited = await fetch(`${api.url}/api/v1/audit/export?after=2000-01-01T00:00:00Z&target=nothing`)
    expect(await limited.text()).toBe('{"end":{"is_complete":true,"entries":0}}\n')
  })

  it('the audit log is searched by actor', async () => {
    const { body } = await api.get('/api/v1/audit?actor=anonymous&action=queue.create&limit=1')
    expect(body.entries).toHaveLength(1)
    const none = await api.get('/api/v1/audit?actor=unknown')
    expect(none.body).toMatchObject({ entries: [], next_cursor: null, is_complete: true })
  })

  it.each(['limit=501', 'cursor=abc', 'colour=red', 'target='])(
    'the audit log refuses the query %s',
    async (query) => {
      expect((await api.get(`/api/v1/audit?${query}`)).status).toBe(400)
    },
  )
})

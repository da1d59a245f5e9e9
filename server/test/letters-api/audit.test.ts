import { expect, it } from 'vitest'
import { type Body, describeServers, envelope } from './servers.ts'

describeServers('the audit log', (api) => {
  it('tells who did what to which and why, newest first, page by page', async () => {
    const { queue, dead } = await api.queues()
    const ids = await api.capture(dead, ...Array.from({ length: 3 }, () => envelope(queue)))
    await api.post('/api/v1/letters/discard', { ids, reason: 'none is needed' })
    const { body } = await api.get(`/api/v1/audit?target=${ids[1]}`)
    expect(body).toMatchObject({
      entries: [
        {
          action: 'letter.discard',
          actor: 'anonymous',
          target: ids[1],
          reason: 'none is needed',
          details: {},
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

  it('finds by who did it', async () => {
    const { body } = await api.get('/api/v1/audit?actor=anonymous&action=queue.create&limit=1')
    expect(body.entries).toHaveLength(1)
    const none = await api.get('/api/v1/audit?actor=nobody')
    expect(none.body).toMatchObject({ entries: [], next_cursor: null, is_complete: true })
  })

  it.each(['limit=501', 'cursor=abc', 'colour=red', 'target='])('refuses %s', async (query) => {
    expect((await api.get(`/api/v1/audit?${query}`)).status).toBe(400)
  })
})

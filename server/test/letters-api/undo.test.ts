import { describe, expect, it } from 'vitest'
import { pollUntil } from '../http/poll-until.ts'
import { type Body, createEnvelope, describeLettersServers, type LettersServer } from './servers.ts'
import { complete, declareDead, lease } from './worker.ts'

const campaign = { name: 'wrong filter', reason: 'a mistake' }

async function createLetters(api: LettersServer, count: number) {
  const queues = await api.createQueues()
  const envelopes = Array.from({ length: count }, () => createEnvelope(queues.queue))
  return { ...queues, ids: await api.capture(queues.dead, ...envelopes) }
}

describeLettersServers('undo', (api) => {
  const restore = (body: object) => api.post('/api/v1/letters/restore', body)
  const cancel = (body: object) => api.post('/api/v1/letters/cancel-redrive', body)
  const countStatuses = async (dead: string): Promise<Readonly<Record<string, number>>> => {
    const { counts } = (await api.get(`/api/v1/letters/counts?queue=${dead}&by=status`)).body
    return Object.fromEntries(counts.map(({ status, count }: Body) => [status, count]))
  }

  it('discarded letters are restored at once by id, and a repeated call changes nothing', async () => {
    const { dead, ids } = await createLetters(api, 3)
    await api.post('/api/v1/letters/discard', { ids, reason: 'a mistake' })
    expect(await countStatuses(dead)).toEqual({ DISCARDED: 3 })
    const first = await restore({ ids: ids.slice(0, 2), reason: 'not meant', expected_count: 2 })
    expect(first.body).toMatchObject({ restored: 2, refused: 0, is_complete: true })
    expect(await countStatuses(dead)).toEqual({ DISCARDED: 1, PENDING: 2 })
    const again = await restore({ ids: ids.slice(0, 2) })
    expect(again.body).toMatchObject({ restored: 0, refused: 2, letters: [{ refusal: 'not-discarded' }, {}] })
    const { body: letter } = await api.get(`/api/v1/letters/${ids[0]}`)
    expect(letter).toMatchObject({ status: 'PENDING', discard_reason: '' })
    expect(letter.audit.map(({ action, reason }: Body) => [action, reason])).toEqual([
      ['letter.restore', 'not meant'],
      ['letter.discard', 'a mistake'],
    ])
    const { groups } = (await api.get(`/api/v1/groups?queue=${dead}`)).body
    expect(groups).toMatchObject([{ count: 3, statuses: { PENDING: 2, DISCARDED: 1 } }])
  })

  describe('nothing removes open letters in passing', () => {
    const countsOf = async (name: string): Promise<Body> =>
      (await api.get(`/api/v1/queues/${name}`)).body.counts

    it.each([
      ['queue.clear', 'standard', {}],
      ['queue.clear with destructive', 'financial', { destructive: true }],
    ])('%s on a dead queue of class %s discards its letters', async (_, letter_class, options) => {
      const { queue, dead } = await api.createQueues({ letter_class })
      const ids = await api.capture(dead, createEnvelope(queue), createEnvelope(queue))
      await api.post('/v1/queue.produce', {
        queue_name: dead,
        request_timeout: '1m',
        items: [{ utf8: 'no letter' }],
      })
      const cleared = await api.post('/v1/queue.clear', { queue_name: dead, queue: true, ...options })
      expect(cleared.status).toBe(200)
      expect(await countsOf(dead)).toMatchObject({ waiting: 0, discarded: 2, deleted: 1 })
      const { body: letter } = await api.get(`/api/v1/letters/${ids[0]}`)
      expect(letter).toMatchObject({ status: 'DISCARDED', discard_reason: 'queue.clear' })
      expect(letter.audit).toMatchObject([{ action: 'letter.discard', details: { by: 'queue.clear' } }])
      expect((await restore({ filter: { queue: dead } })).body).toMatchObject({ restored: 2 })
      expect(await countStatuses(dead)).toEqual({ PENDING: 2 })
    })

    it('storage/items.delete discards letters, also if it is repeated', async () => {
      const { dead, ids } = await createLetters(api, 2)
      const gone = { queue_name: dead, partition: 0, ids }
      for (let times = 0; times < 2; times++) {
        expect((await api.post('/v1/storage/items.delete', gone)).status).toBe(200)
        expect(await countStatuses(dead)).toEqual({ DISCARDED: 2 })
      }
      expect((await restore({ ids })).body).toMatchObject({ restored: 2 })
    })

    it('storage/items.delete of a letter in redrive is refused', async () => {
      const { dead, ids } = await createLetters(api, 2)
      await api.post('/api/v1/letters/redrive', { ids: ids.slice(0, 1) })
      const refused = await api.post('/v1/storage/items.delete', { queue_name: dead, partition: 0, ids })
      expect(refused).toMatchObject({
        status: 400,
        body: { message: `letter ${ids[0]} cannot be removed: its redrive is in progress` },
      })
      expect(await countStatuses(dead)).toEqual({ PENDING: 1, RETRYING: 1 })
    })

    it('deleting a dead queue with open letters is refused without force, with a way out', async () => {
      const { queue, dead } = await createLetters(api, 2)
      await api.post('/v1/queues.update', { queue_name: queue, dead_queue: '' })
      const way = 'redrive or discard them first, or set force'
      const message = `queue ${dead} holds 2 open dead letters, which would be lost with it; ${way}`
      const refused = await fetch(`${api.url}/api/v1/queues/${dead}`, { method: 'DELETE' })
      expect(refused.status).toBe(409)
      expect(await refused.json()).toMatchObject({ error: { code: 'QUEUE_HOLDS_LETTERS', message } })
      const byQueueApi = await api.post('/v1/queues.delete', { queue_name: dead })
      expect(byQueueApi).toMatchObject({ status: 400, body: { message } })
      await api.post('/v1/queue.clear', { queue_name: dead, queue: true })
      expect((await api.post('/v1/queues.delete', { queue_name: dead })).status).toBe(200)
    })

    it('a queue that holds no letters is cleared and deleted as the Queue API defines', async () => {
      const { queue } = await api.createQueues()
      const items = [{ utf8: 'a' }, { utf8: 'b' }]
      await api.post('/v1/queue.produce', { queue_name: queue, request_timeout: '1m', items })
      expect((await api.post('/v1/queue.clear', { queue_name: queue, queue: true })).status).toBe(200)
      expect(await countsOf(queue)).toMatchObject({ waiting: 0, discarded: 0, deleted: 2 })
      await api.post('/v1/queue.produce', { queue_name: queue, request_timeout: '1m', items })
      expect((await api.post('/v1/queues.delete', { queue_name: queue })).status).toBe(200)
    })
  })

  it('a restored letter is DEAD if it was DEAD before, also if the redrive limit was raised since then', async () => {
    const { queue, dead } = await api.createQueues({ redrive: { redrives_max: 1 } })
    const ids = await api.capture(dead, createEnvelope(queue), createEnvelope(queue))
    await api.post('/api/v1/letters/redrive', { ids: ids.slice(0, 1) })
    await declareDead(api, queue, await lease(api, queue), 'still broken')
    expect(await countStatuses(dead)).toEqual({ DEAD: 1, PENDING: 1 })
    await api.post('/api/v1/letters/discard', { ids, reason: 'a mistake' })
    await api.patch(`/api/v1/queues/${dead}`, { policy: { redrive: { redrives_max: 5 } } })
    expect((await restore({ ids })).body.restored).toBe(2)
    expect(await countStatuses(dead)).toEqual({ DEAD: 1, PENDING: 1 })
  })

  it('discarded letters are restored by filter and by the campaign that discarded them', async () => {
    const { dead, ids } = await createLetters(api, 5)
    await api.post('/api/v1/letters/discard', { ids: ids.slice(0, 2), reason: 'by hand' })
    const spec = { ...campaign, action: 'discard', filter: { queue: dead } }
    const { body } = await api.post('/api/v1/campaigns', spec)
    const read = async (): Promise<Body> => (await api.get(`/api/v1/campaigns/${body.id}`)).body
    await pollUntil(read, ({ is_ended }) => is_ended)
    expect(await countStatuses(dead)).toEqual({ DISCARDED: 5 })
    const refused = await restore({ campaign_id: body.id, expected_count: 5 })
    expect(refused).toMatchObject({ status: 409, body: { error: { code: 'SELECTION_CHANGED' } } })
    const ofCampaign = await restore({ campaign_id: body.id, expected_count: 3, reason: 'not meant' })
    expect(ofCampaign.body).toMatchObject({ restored: 3, refused: 0, is_complete: true })
    expect(await countStatuses(dead)).toEqual({ DISCARDED: 2, PENDING: 3 })
    const limited = await restore({ filter: { queue: dead }, limit: 1 })
    expect(limited.body).toMatchObject({ restored: 1 })
    expect((await restore({ filter: { queue: dead } })).body).toMatchObject({ restored: 1 })
    expect(await countStatuses(dead)).toEqual({ PENDING: 5 })
    for (const wrong of [
      {},
      { filter: {} },
      { ids, campaign_id: body.id },
      { filter: { status: 'PENDING' } },
    ]) {
      expect((await restore(wrong)).status, JSON.stringify(wrong)).toBe(400)
    }
  })

  it('a redrive is cancelled while its item waits: the item is gone and the letter is PENDING again', async () => {
    const { queue, dead, ids } = await createLetters(api, 3)
    await api.post('/api/v1/letters/redrive', { ids })
    const items = await lease(api, queue, 1)
    const { body } = await cancel({ ids: [...ids, '0'.repeat(27)], reason: 'wrong release' })
    expect(body).toMatchObject({ cancelled: 2, refused: 2 })
    expect(body.letters.map(({ refusal }: Body) => refusal)).toEqual(['processing', null, null, 'missing'])
    expect(await countStatuses(dead)).toEqual({ RETRYING: 1, PENDING: 2 })
    const again = await cancel({ ids: ids.slice(1) })
    expect(again.body).toMatchObject({ cancelled: 0, letters: [{ refusal: 'not-redriving' }, {}] })
    const { body: letter } = await api.get(`/api/v1/letters/${ids[1]}`)
    expect(letter).toMatchObject({ status: 'PENDING', retry_count: 0, redrives: [{ outcome: 'cancelled' }] })
    expect(letter.audit[0]).toMatchObject({ action: 'letter.cancel-redrive', reason: 'wrong release' })
    const shown = (await api.get(`/api/v1/queues/${queue}`)).body.counts
    expect(shown).toMatchObject({ waiting: 0, leased: 1, deleted: 2, accepted: 3 })
    await complete(api, queue, items)
    expect(await countStatuses(dead)).toEqual({ RESOLVED: 1, PENDING: 2 })
    await api.post('/api/v1/letters/redrive', { ids: ids.slice(1) })
    await complete(api, queue, await lease(api, queue, 2))
    expect(await countStatuses(dead)).toEqual({ RESOLVED: 3 })
  })

  it('the redrives of a campaign are cancelled, and the campaign counts the letters as skipped', async () => {
    const { queue, dead } = await createLetters(api, 4)
    const spec = { ...campaign, action: 'redrive', filter: { queue: dead } }
    const { body } = await api.post('/api/v1/campaigns', spec)
    const read = async (): Promise<Body> => (await api.get(`/api/v1/campaigns/${body.id}`)).body
    await pollUntil(read, ({ counts }) => counts.sent === 4)
    const items = await lease(api, queue, 1)
    const done = await cancel({ campaign_id: body.id, expected_count: 4 })
    expect(done.body).toMatchObject({ cancelled: 3, refused: 1, letters: [{ refusal: 'processing' }] })
    await complete(api, queue, items)
    const ended = await pollUntil(read, ({ is_ended }) => is_ended)
    expect(ended.counts).toMatchObject({ resolved: 1, skipped: 3, sent: 0 })
    expect(await countStatuses(dead)).toEqual({ RESOLVED: 1, PENDING: 3 })
  })
})

import { describe, expect, it } from 'vitest'
import { type Body, createEnvelope, describeLettersServers } from './servers.ts'
import { complete, createLetters, declareDead, lease } from './worker.ts'

const unknownId = '0'.repeat(27)

describeLettersServers('redriving letters', (api) => {
  it('a redriven letter goes to its origin and is RESOLVED only when the item was processed', async () => {
    const { queue, dead } = await api.createQueues()
    await createLetters(api, queue, ['work'], 'boom')
    const { body: list } = await api.get(`/api/v1/letters?queue=${dead}`)
    const { id } = list.letters[0]
    const sent = await api.post('/api/v1/letters/redrive', { ids: [id], reason: 'the receiver is back' })
    expect(sent.body).toMatchObject({
      started: 1,
      refused: 0,
      letters: [{ id, is_started: true, refusal: null, number: 1, target: { queue } }],
    })
    expect((await api.get(`/api/v1/letters/${id}`)).body).toMatchObject({
      status: 'RETRYING',
      redrives: [{ number: 1, outcome: null, target: { kind: 'queue', name: queue } }],
    })
    const items = await lease(api, queue)
    expect(items.map(({ text }) => text)).toEqual(['work'])
    await complete(api, queue, items)
    const { body } = await api.get(`/api/v1/letters/${id}`)
    expect(body).toMatchObject({
      status: 'RESOLVED',
      retry_count: 0,
      requeue_count: 1,
      redrives: [{ outcome: 'resolved', actor: 'anonymous', campaign: null, edit: null }],
    })
    expect(body.audit[0]).toMatchObject({
      action: 'letter.redrive',
      target: id,
      actor: 'anonymous',
      reason: 'the receiver is back',
    })
  })

  it('an item that dies again after a redrive returns to the same letter with all failures', async () => {
    const { queue, dead } = await api.createQueues()
    await createLetters(api, queue, ['work'], 'first error')
    const { body: list } = await api.get(`/api/v1/letters?queue=${dead}`)
    const { id } = list.letters[0]
    await api.post(`/api/v1/letters/${id}/redrive`)
    await declareDead(api, queue, await lease(api, queue), 'second error')
    const { body } = await api.get(`/api/v1/letters/${id}`)
    expect(body).toMatchObject({ status: 'PENDING', retry_count: 1, redrives: [{ outcome: 'failed' }] })
    expect(body.failures.map(({ message }: Body) => message)).toEqual(['second error', 'first error'])
    expect((await api.get(`/api/v1/letters/counts?queue=${dead}`)).body.total).toBe(1)
  })

  it('a redrive of several letters sends those that it can and returns a reason for each other', async () => {
    const { queue, dead } = await api.createQueues()
    const ids = await api.capture(dead, ...Array.from({ length: 4 }, () => createEnvelope(queue)))
    await api.post('/api/v1/letters/discard', { ids: [ids[0]], reason: 'known' })
    await api.post('/api/v1/letters/redrive', { ids: [ids[1]] })
    const asked = [...ids, unknownId, 'nonsense', ids[3]]
    const { status, body } = await api.post('/api/v1/letters/redrive', { ids: asked })
    expect(status).toBe(200)
    expect(body.letters.map(({ id, is_started, refusal }: Body) => [id, is_started, refusal])).toEqual([
      [ids[0], false, 'discarded'],
      [ids[1], false, 'redriving'],
      [ids[2], true, null],
      [ids[3], true, null],
      [unknownId, false, 'missing'],
      ['nonsense', false, 'missing'],
    ])
    expect(body).toMatchObject({ started: 2, refused: 4 })
  })

  it('a redrive goes to the target queue, but never to a dead queue', async () => {
    const { queue, dead } = await api.createQueues()
    const other = await api.createQueues()
    // No queue uses it as its dead queue, but letters were captured into it.
    const filled = `filled-${queue}`
    await api.post('/api/v1/queues', { name: filled })
    await api.capture(filled, createEnvelope(queue))
    const ids = await api.capture(dead, createEnvelope(queue), createEnvelope(queue))
    for (const target of [dead, other.dead, filled, 'no-such-queue']) {
      for (const path of ['redrive', `${ids[0]}/redrive`]) {
        const body = path === 'redrive' ? { ids, target } : { target }
        const refused = await api.post(`/api/v1/letters/${path}`, body)
        expect(refused.status).toBe(400)
        expect(refused.body.error).toMatchObject({
          code: 'TARGET_INVALID',
          message: expect.stringContaining(target),
        })
      }
    }
    const campaign = { action: 'redrive', ids, target: filled }
    const preview = await api.post('/api/v1/campaigns/preview', campaign)
    expect(preview.body.warnings).toContain(`queue ${filled} is a dead queue: its 2 letters will be skipped`)
    const created = await api.post('/api/v1/campaigns', { ...campaign, name: 'n', reason: 'r' })
    expect(created).toMatchObject({ status: 400, body: { error: { code: 'TARGET_INVALID' } } })
    expect((await api.get(`/api/v1/letters?queue=${dead}&status=PENDING`)).body.total).toBe(2)
    await api.post('/api/v1/letters/redrive', { ids, target: other.queue })
    expect(await lease(api, other.queue, 2)).toHaveLength(2)
  })

  it('a DEAD letter is redriven only with include_dead', async () => {
    const { queue, dead } = await api.createQueues({ redrive: { redrives_max: 1 } })
    const [id] = await api.capture(dead, createEnvelope(queue))
    await api.post('/api/v1/letters/redrive', { ids: [id] })
    await declareDead(api, queue, await lease(api, queue), 'again')
    expect((await api.get(`/api/v1/letters/${id}`)).body.status).toBe('DEAD')
    const refused = await api.post(`/api/v1/letters/${id}/redrive`)
    expect(refused).toMatchObject({ status: 409, body: { error: { code: 'LETTER_NOT_RETRYABLE' } } })
    const sent = await api.post(`/api/v1/letters/${id}/redrive`, { include_dead: true })
    expect(sent.body).toMatchObject({ is_started: true, number: 2 })
  })

  it('concurrent redrives send each letter once', async () => {
    const { queue, dead } = await api.createQueues()
    const ids = await api.capture(dead, ...Array.from({ length: 5 }, () => createEnvelope(queue)))
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => api.post('/api/v1/letters/redrive', { ids })),
    )
    expect(answers.reduce((sum, { body }) => sum + body.started, 0)).toBe(5)
    expect(await lease(api, queue, 10)).toHaveLength(5)
  })

  it('a call with more than 1,000 ids is refused and suggests a campaign', async () => {
    const ids = Array.from({ length: 1_001 }, (_, index) => String(index).padStart(27, '0'))
    for (const [path, more] of [
      ['letters/redrive', {}],
      ['letters/discard', { reason: 'x' }],
      ['letters/restore', {}],
      ['archive/restore', {}],
    ] as const) {
      const { status, body } = await api.post(`/api/v1/${path}`, { ids, ...more })
      expect(status).toBe(400)
      expect(body.error.message).toMatch(/1001 ids; at most 1000 are allowed.*campaign/)
    }
  })
})

describeLettersServers('editing letters', (api) => {
  it('an edited redrive sends the edited version and keeps the original', async () => {
    const { queue, dead } = await api.createQueues()
    const [id] = await api.capture(
      dead,
      createEnvelope(queue, { original_value: '{"vat": null}', original_key: 'k', headers: { tenant: 'a' } }),
    )
    const edit = {
      payload: { json: { vat: 19 } },
      headers: [{ name: 'tenant', text: 'b' }, { name: 'fixed' }],
    }
    const sent = await api.post(`/api/v1/letters/${id}/redrive`, { edit, reason: 'vat was missing' })
    expect(sent.body).toMatchObject({ is_started: true, edit: 1 })
    const items = await lease(api, queue)
    expect(items.map(({ text }) => text)).toEqual(['{"vat":19}'])
    await complete(api, queue, items)
    const { body } = await api.get(`/api/v1/letters/${id}?payload_form=text`)
    expect(body).toMatchObject({
      status: 'RESOLVED',
      payload: { text: '{"vat": null}' },
      headers: [{ name: 'tenant', text: 'a' }],
      redrives: [{ edit: 1, outcome: 'resolved' }],
      edits: [
        {
          number: 1,
          actor: 'anonymous',
          key: { text: 'k' },
          payload: { text: '{"vat":19}' },
          headers: [{ name: 'tenant', text: 'b' }, { name: 'fixed' }],
        },
      ],
    })
    expect(body.audit.map(({ action }: Body) => action)).toEqual(
      expect.arrayContaining(['letter.edit', 'letter.redrive']),
    )
  })

  it('an edited version is sent again by its number, and without a number the original is sent', async () => {
    const { queue, dead } = await api.createQueues()
    const [id] = await api.capture(dead, createEnvelope(queue, { original_value: 'the original' }))
    const send = (body: object) => api.post(`/api/v1/letters/${id}/redrive`, body)
    const leaseAndFail = async () => {
      const items = await lease(api, queue)
      await declareDead(api, queue, items, 'again')
      return items.map(({ text }) => text)
    }
    await send({ edit: { payload: { text: 'repaired' } } })
    expect(await leaseAndFail()).toEqual(['repaired'])
    expect((await send({ edit: 1 })).body).toMatchObject({ is_started: true, edit: 1 })
    expect(await leaseAndFail()).toEqual(['repaired'])
    expect((await send({})).body).toMatchObject({ is_started: true, edit: null })
    expect(await leaseAndFail()).toEqual(['the original'])
    for (const edit of [0, 1.5, '1', true]) {
      expect(await send({ edit })).toMatchObject({ status: 400, body: { error: { code: 'BAD_REQUEST' } } })
    }
    const none = await send({ edit: 2, include_dead: true })
    expect(none).toMatchObject({ status: 409, body: { error: { code: 'LETTER_NOT_RETRYABLE' } } })
    expect(none.body.error.message).toContain('has no edited version 2')
    const { body } = await api.get(`/api/v1/letters/${id}`)
    expect(body.edits).toHaveLength(1)
    expect(body.redrives.map(({ edit }: Body) => edit)).toEqual([null, 1, 1])
  })

  it('an edit accepts bytes as base64, and null removes the key', async () => {
    const { queue, dead } = await api.createQueues()
    const [id] = await api.capture(dead, createEnvelope(queue, { original_key: 'k' }))
    await api.post(`/api/v1/letters/${id}/redrive`, { edit: { payload: { base64: '/wA=' }, key: null } })
    const { body } = await api.get(`/api/v1/letters/${id}`)
    expect(body.edits).toMatchObject([{ key: null, payload: { bytes: 2, base64: '/wA=' } }])
  })

  it('an edit of a letter that cannot be sent is not stored', async () => {
    const { queue, dead } = await api.createQueues()
    const [id] = await api.capture(dead, createEnvelope(queue))
    const refused = async (body: object, status: number, code: string) => {
      const answer = await api.post(`/api/v1/letters/${id}/redrive`, body)
      expect(answer).toMatchObject({ status, body: { error: { code } } })
    }
    await refused({ edit: {} }, 400, 'BAD_REQUEST')
    await refused({ edit: { payload: { text: 'a', base64: 'YQ==' } } }, 400, 'BAD_REQUEST')
    await refused({ edit: { payload: { base64: '***' } } }, 400, 'BAD_REQUEST')
    await refused({ edit: { headers: [{ text: 'x' }] } }, 400, 'BAD_REQUEST')
    await refused({ edit: { body: 'x' } }, 400, 'BAD_REQUEST')
    await api.post('/api/v1/letters/redrive', { ids: [id] })
    await refused({ edit: { payload: { text: 'b' } } }, 409, 'LETTER_NOT_RETRYABLE')
    expect((await api.get(`/api/v1/letters/${id}`)).body.edits).toEqual([])
    const missing = await api.post(`/api/v1/letters/${unknownId}/redrive`, {
      edit: { payload: { text: 'b' } },
    })
    expect(missing).toMatchObject({ status: 404, body: { error: { code: 'LETTER_NOT_FOUND' } } })
  })

  it('an edit with a refused target is not stored', async () => {
    const { queue, dead } = await api.createQueues()
    const [id] = await api.capture(dead, createEnvelope(queue))
    for (const target of ['nowhere', dead]) {
      const answer = await api.post(`/api/v1/letters/${id}/redrive`, {
        edit: { payload: { text: 'b' } },
        target,
      })
      expect(answer).toMatchObject({ status: 400, body: { error: { code: 'TARGET_INVALID' } } })
    }
    expect((await api.get(`/api/v1/letters/${id}`)).body).toMatchObject({ edits: [], audit: [] })
  })

  it('concurrent edits of a letter store one edit, one redrive and one audit row of each', async () => {
    const { queue, dead } = await api.createQueues()
    const [id] = await api.capture(dead, createEnvelope(queue))
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        api.post(`/api/v1/letters/${id}/redrive`, { edit: { payload: { text: `version ${index}` } } }),
      ),
    )
    const statuses = answers.map(({ status }) => status).toSorted()
    expect(statuses).toEqual([200, ...Array(11).fill(409)])
    const { body } = await api.get(`/api/v1/letters/${id}`)
    expect(body.edits).toHaveLength(1)
    expect(body.audit.map(({ action }: Body) => action)).toEqual(['letter.redrive', 'letter.edit'])
  })
})

describeLettersServers('discarding letters', (api) => {
  it('a refused discard writes no audit row', async () => {
    const { queue, dead } = await api.createQueues()
    const [id] = await api.capture(dead, createEnvelope(queue))
    await api.post('/api/v1/letters/redrive', { ids: [id] })
    const refused = await api.post('/api/v1/letters/discard', { ids: [id], reason: 'obsolete' })
    expect(refused.body).toMatchObject({ discarded: 0, letters: [{ refusal: 'redriving' }] })
    const { body } = await api.get(`/api/v1/letters/${id}`)
    expect(body.audit.map(({ action }: Body) => action)).toEqual(['letter.redrive'])
  })

  it('a discard needs a reason, is audited, and returns a result for each letter', async () => {
    const { queue, dead } = await api.createQueues()
    const ids = await api.capture(dead, createEnvelope(queue), createEnvelope(queue))
    for (const reason of [undefined, '', '   ']) {
      expect((await api.post('/api/v1/letters/discard', { ids, reason })).status).toBe(400)
    }
    await api.post('/api/v1/letters/redrive', { ids: [ids[1]] })
    const { body } = await api.post('/api/v1/letters/discard', {
      ids: [...ids, unknownId],
      reason: 'test data',
    })
    expect(body).toMatchObject({
      discarded: 1,
      refused: 2,
      letters: [
        { id: ids[0], is_done: true, refusal: null },
        { id: ids[1], is_done: false, refusal: 'redriving' },
        { id: unknownId, is_done: false, refusal: 'missing' },
      ],
    })
    expect((await api.get(`/api/v1/letters/${ids[0]}`)).body).toMatchObject({
      status: 'DISCARDED',
      discard_reason: 'test data',
      audit: [{ action: 'letter.discard', reason: 'test data' }],
    })
  })

  it('a discarded letter stays discarded when its source id is captured again', async () => {
    const { queue, dead } = await api.createQueues()
    const [id] = await api.capture(dead, createEnvelope(queue, { source_id: 'orders/1' }))
    await api.post('/api/v1/letters/discard', { ids: [id], reason: 'not wanted' })
    const again = await api.post('/api/v1/letters', {
      queue: dead,
      letters: [createEnvelope(queue, { source_id: 'orders/1' })],
    })
    expect(again.body.letters).toEqual([{ id, is_new: false, problems: [] }])
    expect((await api.get(`/api/v1/letters/${id}`)).body.status).toBe('DISCARDED')
  })
})

describeLettersServers('reading one letter', (api) => {
  it('an unknown or malformed letter id is not found', async () => {
    for (const id of [
      unknownId,
      'nonsense',
      '00000000-0000-4000-8000-000000000000',
      encodeURIComponent('a/b'),
    ]) {
      for (const path of ['letters', 'archive']) {
        const { status, body } = await api.get(`/api/v1/${path}/${id}`)
        expect([path, id, status, body.error?.code]).toEqual([path, id, 404, 'LETTER_NOT_FOUND'])
      }
    }
  })

  it('bytes that are not text are shown in base64, in the letter and in lists', async () => {
    const { queue, dead } = await api.createQueues()
    const odd = { base64: Buffer.from([0xff, 0xfe, 0x00]).toString('base64') }
    const [id] = await api.capture(
      dead,
      createEnvelope(queue, { original_value: odd, original_key: odd }),
      createEnvelope(queue),
    )
    const { body } = await api.get(`/api/v1/letters/${id}?payload_form=json`)
    expect(body).toMatchObject({
      key: { base64: '//4A' },
      payload: { bytes: 3, is_truncated: false, base64: '//4A' },
    })
    const page = await api.get(`/api/v1/letters?queue=${dead}&order=asc`)
    expect(page.body.letters).toMatchObject([
      { id, payload: { base64: '//4A' } },
      { payload: { text: 'the payload' } },
    ])
    const json = await api.get(`/api/v1/letters?queue=${dead}&json=${encodeURIComponent('$.a=1')}`)
    expect(json).toMatchObject({ status: 200, body: { letters: [], examined_count: 2, next_cursor: null } })
  })

  it('an unknown payload form is refused', async () => {
    expect((await api.get(`/api/v1/letters/${unknownId}?payload_form=xml`)).status).toBe(400)
  })
})

describe('additional permissions', () => {
  it('a redrive with an edit and a campaign need a second permission', async () => {
    const { routes } = await import('../../src/api/routes.ts')
    const needs = (path: string, body: object) =>
      routes.find((row) => row.method === 'POST' && row.path === path)?.alsoNeeds?.({ body } as never)
    expect(needs('/api/v1/letters/{id}/redrive', {})).toBeUndefined()
    expect(needs('/api/v1/letters/{id}/redrive', { edit: {} })).toBe('letter.edit')
    expect(needs('/api/v1/campaigns', { action: 'discard' })).toBe('letter.discard')
    expect(needs('/api/v1/campaigns', { action: 'redrive' })).toBe('letter.redrive')
  })
})

import { describe, expect, it } from 'vitest'
import { pollUntil } from '../http/poll-until.ts'
import { type Body, createEnvelope, describeLettersServers, type LettersServer } from './servers.ts'
import { complete, declareDead, lease } from './worker.ts'

const unknownId = '0'.repeat(27)
const named = { name: 'after the fix', reason: 'release 7 fixes it', action: 'redrive' }

async function startCampaign(api: LettersServer, count: number, more: object = {}) {
  const { queue, dead } = await api.createQueues()
  const ids = await api.capture(dead, ...Array.from({ length: count }, () => createEnvelope(queue)))
  const { status, body } = await api.post('/api/v1/campaigns', { ...named, filter: { queue: dead }, ...more })
  expect([status, body.error]).toEqual([200, undefined])
  const read = async (): Promise<Body> => (await api.get(`/api/v1/campaigns/${body.id}`)).body
  return { queue, dead, ids, id: body.id as string, read }
}

describeLettersServers('a campaign', (api) => {
  it('a preview shows the selection of a campaign and changes nothing', async () => {
    const { queue, dead } = await api.createQueues()
    await api.capture(dead, ...Array.from({ length: 12 }, () => createEnvelope(queue)))
    const selection = { action: 'redrive', filter: { queue: dead, status: 'PENDING' } }
    const { body } = await api.post('/api/v1/campaigns/preview', selection)
    expect(body).toMatchObject({
      count: 12,
      is_exact: true,
      targets: [{ queue, count: 12 }],
      statuses: { PENDING: 12 },
    })
    expect(body.sample.length).toBeGreaterThan(0)
    expect((await api.get(`/api/v1/letters?queue=${dead}&status=PENDING`)).body.total).toBe(12)
    const none = await api.post('/api/v1/campaigns/preview', { action: 'discard', ids: [unknownId] })
    expect(none.body.warnings.join()).toContain('missing')
  })

  it('a preview warns of letters that will be skipped because of their status', async () => {
    const { queue, dead } = await api.createQueues()
    const ids = await api.capture(dead, ...Array.from({ length: 3 }, () => createEnvelope(queue)))
    await api.post('/api/v1/letters/redrive', { ids: ids.slice(0, 1) })
    const preview = async (more: object) =>
      (await api.post('/api/v1/campaigns/preview', { action: 'redrive', ...more })).body
    const inProgress = await preview({ filter: { queue: dead, status: ['RETRYING', 'PENDING'] } })
    expect(inProgress).toMatchObject({ count: 3, targets: [{ queue, count: 2 }] })
    expect(inProgress.warnings).toContain(
      '1 letters will be skipped because a redrive is in progress or a consumer holds them',
    )
    await api.post('/api/v1/letters/discard', { ids: ids.slice(1, 2), reason: 'a test' })
    const discarded = await preview({ filter: { queue: dead, status: 'DISCARDED' } })
    expect(discarded).toMatchObject({ count: 1, targets: [] })
    expect(discarded.warnings).toContain('1 DISCARDED letters will be skipped')

    for (let time = 0; time < 3; time++) {
      if (time > 0) await api.post('/api/v1/letters/redrive', { ids: ids.slice(0, 1) })
      await declareDead(api, queue, await lease(api, queue), 'still broken')
    }
    const filter = { queue: dead, status: 'DEAD' }
    const skipped = await preview({ filter })
    expect(skipped).toMatchObject({ count: 1, targets: [] })
    expect(skipped.warnings).toContain('1 DEAD letters will be skipped; set include_dead to send them')
    const sent = await preview({ filter, include_dead: true })
    expect(sent).toMatchObject({ count: 1, targets: [{ queue, count: 1 }] })
    expect(sent.warnings.join()).not.toContain('skipped')
  })

  it('a campaign shows its filter, also for a class without queues, a class of many queues, and long values', async () => {
    const { dead } = await api.createQueues({ letter_class: 'crowded' })
    for (let number = 0; number < 101; number++) await api.createQueues({ letter_class: 'crowded' })
    const long = '"x'.repeat(1_900)
    const key = Buffer.from('k'.repeat(10_400)).toString('base64')
    const filters = [
      { letter_class: 'misspelt' },
      { letter_class: 'crowded' },
      { json: `$.a=${long}` },
      { key_base64: key },
    ]
    const created: string[] = []
    for (const filter of filters) {
      const { status, body } = await api.post('/api/v1/campaigns', { ...named, action: 'discard', filter })
      expect([status, body.error]).toEqual([200, undefined])
      created.push(body.id)
      const again = await api.get(`/api/v1/campaigns/${body.id}`)
      expect([again.status, again.body.filter]).toEqual([200, body.filter])
    }
    const crowded = await api.get(`/api/v1/campaigns/${created[1]}`)
    expect(crowded.body.filter.queue).toHaveLength(102)
    expect(crowded.body.filter.queue).toContain(dead)
    const list = await api.get('/api/v1/campaigns?limit=10')
    expect(list.status).toBe(200)
    expect(list.body.campaigns.map(({ id }: Body) => id)).toEqual(expect.arrayContaining(created))
  })

  it('the audit log has the size of a campaign with a filter once its set is frozen', async () => {
    const { id, read } = await startCampaign(api, 3)
    await pollUntil(read, ({ counts }) => counts.sent === 3)
    const { entries } = (await api.get(`/api/v1/audit?target=${id}`)).body
    const rows = entries.map(({ action, actor, reason, details }: Body) => [
      action,
      actor,
      reason,
      details.letters,
    ])
    expect(rows).toEqual([
      ['campaign.freeze', 'anonymous', named.reason, 3],
      ['campaign.create', 'anonymous', named.reason, undefined],
    ])
  })

  it('a campaign of all letters needs all: true; an empty filter is refused', async () => {
    const { queue, dead } = await api.createQueues()
    await api.capture(dead, createEnvelope(queue))
    for (const path of ['/api/v1/campaigns', '/api/v1/campaigns/preview']) {
      for (const action of ['redrive', 'discard']) {
        const spec = path.endsWith('preview') ? { action } : { ...named, action }
        for (const odd of [
          { filter: {} },
          { filter: {}, all: false },
          { all: false },
          { all: true, ids: [unknownId] },
          { all: true, filter: { queue: dead } },
        ]) {
          expect((await api.post(path, { ...spec, ...odd })).status, JSON.stringify(odd)).toBe(400)
        }
      }
    }
    const empty = await api.post('/api/v1/campaigns/preview', { action: 'discard', filter: {} })
    expect(JSON.stringify(empty.body)).toContain('set all to true')
    const { total } = (await api.get('/api/v1/letters?status=PENDING')).body
    for (const whole of [{ all: true }, { all: true, filter: {} }]) {
      const preview = await api.post('/api/v1/campaigns/preview', { action: 'redrive', ...whole })
      expect(preview.body).toMatchObject({ count: total, statuses: { PENDING: total } })
    }
  })

  it('a campaign sends its frozen set and reports the outcome of each letter', async () => {
    const { queue, dead, ids, id, read } = await startCampaign(api, 3)
    await pollUntil(read, ({ counts }) => counts?.sent === 3)
    const late = await api.capture(dead, createEnvelope(queue))
    const items = await lease(api, queue, 3)
    await declareDead(api, queue, items.slice(0, 1), 'still broken')
    await complete(api, queue, items.slice(1))
    const done = await pollUntil(read, ({ is_ended }) => is_ended)
    expect(done).toMatchObject({
      ...named,
      state: 'done',
      actor: 'anonymous',
      size: 3,
      filter: { queue: [dead] },
      ids: null,
      counts: { pending: 0, sent: 0, resolved: 2, failed: 1, unknown: 0, skipped: 0 },
    })
    const { body } = await api.get(`/api/v1/campaigns/${id}/letters`)
    expect(body.letters.map((letter: Body) => letter.id)).toEqual(ids)
    expect(body.letters.map((letter: Body) => letter.state).toSorted()).toEqual([
      'failed',
      'resolved',
      'resolved',
    ])
    const failed = await api.get(`/api/v1/campaigns/${id}/letters?state=failed`)
    expect(failed.body.letters).toHaveLength(1)
    const pages = await api.get(`/api/v1/campaigns/${id}/letters?limit=2`)
    const rest = await api.get(`/api/v1/campaigns/${id}/letters?limit=2&cursor=${pages.body.next_cursor}`)
    expect([...pages.body.letters, ...rest.body.letters]).toEqual(body.letters)
    const { body: letter } = await api.get(`/api/v1/letters/${ids[0]}`)
    expect(letter.redrives).toMatchObject([{ campaign: { id, name: named.name } }])
    expect(letter.audit).toEqual(
      expect.arrayContaining([expect.objectContaining({ action: 'campaign.create', reason: named.reason })]),
    )
    expect((await api.get(`/api/v1/letters/${late[0]}`)).body).toMatchObject({
      status: 'PENDING',
      redrives: [],
    })
  })

  it('a campaign of named letters skips letters that cannot be sent, with the reason', async () => {
    const { queue, dead } = await api.createQueues()
    const ids = await api.capture(dead, createEnvelope(queue), createEnvelope(queue))
    await api.post('/api/v1/letters/discard', { ids: [ids[1]], reason: 'x' })
    const { body } = await api.post('/api/v1/campaigns', { ...named, ids: [...ids, unknownId] })
    const letters = async () => (await api.get(`/api/v1/campaigns/${body.id}/letters`)).body.letters
    const sent = await pollUntil(letters, (all) => all.every(({ state }: Body) => state !== 'pending'))
    expect(sent.map(({ id, state, refusal }: Body) => [id, state, refusal])).toEqual([
      [ids[0], 'sent', ''],
      [ids[1], 'skipped', 'discarded'],
      [unknownId, 'skipped', 'missing'],
    ])
    expect((await api.get(`/api/v1/campaigns/${body.id}`)).body.ids).toEqual([...ids, unknownId])
  })

  it('a discard campaign discards its letters with its reason', async () => {
    const { dead, read } = await startCampaign(api, 5, { action: 'discard' })
    const done = await pollUntil(read, ({ is_ended }) => is_ended)
    expect(done).toMatchObject({ state: 'done', counts: { discarded: 5 } })
    const { body } = await api.get(`/api/v1/letters?queue=${dead}`)
    for (const letter of body.letters) {
      expect(letter).toMatchObject({
        status: 'DISCARDED',
        discard_reason: expect.stringContaining(named.reason),
      })
    }
  })

  it('a discard campaign with a number in its filter discards exactly the letters of its preview', async () => {
    const values = ['9007199254740992', '9007199254740993', '1e400', '10e399', '1e401', '-1e400', 'null', '0']
    const cases: readonly [given: string, meant: readonly string[]][] = [
      ['9007199254740993', ['9007199254740993']],
      ['1e400', ['1e400', '10e399']],
      ['-1E+400', ['-1e400']],
      ['1e-400', []],
      ['null', ['null']],
    ]
    for (const [given, meant] of cases) {
      const { queue, dead } = await api.createQueues()
      const letters = values.map((value) => createEnvelope(queue, { original_value: `{"a":${value}}` }))
      const ids = await api.capture(dead, ...letters)
      const wanted = ids.filter((_, index) => meant.includes(values[index] ?? ''))
      const json = `$["a"]=${given}`
      const listIds = ({ body }: { body: Body }) => body.letters.map(({ id }: Body) => id).toSorted()
      const listed = await api.get(`/api/v1/letters?queue=${dead}&json=${encodeURIComponent(json)}`)
      expect(listIds(listed), json).toEqual(wanted.toSorted())

      const selection = { action: 'discard', filter: { queue: dead, json } }
      const preview = await api.post('/api/v1/campaigns/preview', selection)
      expect(preview.body.count, json).toBe(wanted.length)
      expect(preview.body.sample.map(({ id }: Body) => id).toSorted()).toEqual(wanted.toSorted())

      const { body } = await api.post('/api/v1/campaigns', { ...named, ...selection })
      const read = async (): Promise<Body> => (await api.get(`/api/v1/campaigns/${body.id}`)).body
      const done = await pollUntil(read, ({ is_ended }) => is_ended)
      expect(done).toMatchObject({ size: wanted.length, filter: { queue: [dead], json } })
      const discarded = await api.get(`/api/v1/letters?queue=${dead}&status=DISCARDED`)
      expect(listIds(discarded), json).toEqual(wanted.toSorted())
      const audit = await api.get(`/api/v1/audit?target=${body.id}`)
      expect(audit.body.entries.at(-1).details.filter.json).toBe(json)
    }
  })

  it('a campaign of many letters is created before its set is frozen', async () => {
    const { queue, dead } = await api.createQueues()
    for (let batch = 0; batch < 4; batch++) {
      await api.capture(dead, ...Array.from({ length: 1_000 }, () => createEnvelope(queue)))
    }
    const selection = { action: 'discard', filter: { queue: dead, message: 'UPSTREAM' } }
    const preview = await api.post('/api/v1/campaigns/preview', selection)
    expect(preview.body.count).toBeGreaterThan(0)
    expect(preview.body.sample.length).toBeLessThanOrEqual(10)
    const { body } = await api.post('/api/v1/campaigns', { ...named, ...selection })
    expect(body).toMatchObject({ state: 'freezing', size: null })
    const read = async (): Promise<Body> => (await api.get(`/api/v1/campaigns/${body.id}`)).body
    const done = await pollUntil(read, ({ is_ended }) => is_ended)
    expect(done).toMatchObject({ state: 'done', size: 4_000, counts: { discarded: 4_000 } })
    const { body: counts } = await api.get(`/api/v1/letters/counts?queue=${dead}&by=status`)
    expect(counts.counts).toEqual([{ count: 4_000, status: 'DISCARDED' }])
  })

  it('pausing, resuming and cancelling a campaign is audited', async () => {
    const { id, read } = await startCampaign(api, 50, { rate_per_second: 1 })
    const step = (action: string) => api.post(`/api/v1/campaigns/${id}/${action}`, { reason: `to ${action}` })
    await pollUntil(read, ({ state }) => state === 'running')
    expect((await step('pause')).body).toMatchObject({ state: 'paused', state_reason: 'to pause' })
    expect((await step('resume')).body).toMatchObject({ state: 'running' })
    expect((await step('cancel')).body).toMatchObject({ state: 'cancelled' })
    const cancelled = await pollUntil(read, ({ counts }) => counts.pending === 0)
    expect(cancelled.counts.skipped).toBeGreaterThan(0)
    const refused = await step('resume')
    expect(refused).toMatchObject({ status: 409, body: { error: { code: 'CAMPAIGN_STATE' } } })
    const { body } = await api.get(`/api/v1/audit?target=${id}`)
    expect(body.entries.map(({ action, reason }: Body) => [action, reason])).toEqual([
      ['campaign.cancel', 'to cancel'],
      ['campaign.resume', 'to resume'],
      ['campaign.pause', 'to pause'],
      ['campaign.freeze', named.reason],
      ['campaign.create', named.reason],
    ])
  })

  it('the rate of a running campaign can be changed, and the change is audited', async () => {
    const { id, read } = await startCampaign(api, 50, { rate_per_second: 1 })
    const change = (body: object) => api.patch(`/api/v1/campaigns/${id}`, body)
    await pollUntil(read, ({ state }) => state === 'running')
    const quick = { rate_per_second: 1_000, ramp: '1s', halt_ratio: 0.5 }
    const { body } = await change({ ...quick, reason: 'it works' })
    expect(body).toMatchObject({ state: 'running', ...quick, halt_min: 10 })
    await pollUntil(read, ({ counts }) => counts.pending === 0)
    const { entries } = (await api.get(`/api/v1/audit?target=${id}&action=campaign.adjust`)).body
    const before = { rate_per_second: 1, ramp: '0s', halt_ratio: 0.2 }
    expect(entries).toMatchObject([{ reason: 'it works', details: { from: 'running', ...quick, before } }])
    expect((await change({ halt_min: 11, reason: '  ' })).status).toBe(200)
    const { body: latest } = await api.get(`/api/v1/audit?target=${id}&limit=1`)
    expect(latest.entries).toMatchObject([{ action: 'campaign.adjust', reason: '' }])
    for (const wrong of [
      {},
      { reason: 'x' },
      { rate_per_second: -1 },
      { ramp: 'soon' },
      { ramp: '8d' },
      { name: 'x' },
    ]) {
      expect(await change(wrong)).toMatchObject({ status: 400, body: { error: { code: 'BAD_REQUEST' } } })
    }
    await api.post(`/api/v1/campaigns/${id}/cancel`)
    expect(await change(quick)).toMatchObject({ status: 409, body: { error: { code: 'CAMPAIGN_STATE' } } })
  })

  it('campaigns are listed in pages, newest first', async () => {
    const { dead } = await api.createQueues()
    const created: string[] = []
    for (let number = 0; number < 3; number++) {
      const { body } = await api.post('/api/v1/campaigns', { ...named, filter: { queue: dead } })
      created.push(body.id)
    }
    const first = await api.get('/api/v1/campaigns?limit=2')
    expect(first.body.campaigns.map(({ id }: Body) => id)).toEqual([created[2], created[1]])
    const next = await api.get(`/api/v1/campaigns?limit=1&cursor=${first.body.next_cursor}`)
    expect(next.body.campaigns.map(({ id }: Body) => id)).toEqual([created[0]])
  })

  describe('validation', () => {
    const filter = { status: 'PENDING' }
    it.each([
      ['without a name', { ...named, name: undefined, filter }, 'body.name is required'],
      ['with a blank name', { ...named, name: '  ', filter }, 'body.name'],
      ['without a reason', { ...named, reason: undefined, filter }, 'body.reason is required'],
      ['with a blank reason', { ...named, reason: ' ', filter }, 'body.reason'],
      ['without a selection', named, 'needs ids, filter or all'],
      ['with both selections', { ...named, filter, ids: [unknownId] }, 'has ids and filter'],
      ['of no ids', { ...named, ids: [] }, 'body.ids'],
      ['of too many ids', { ...named, ids: Array(10_001).fill(unknownId) }, '10001 ids; at most 10000'],
      ['with an unknown filter', { ...named, filter: { colour: 'red' } }, 'body.filter.colour is not known'],
      [
        'with a bad time',
        { ...named, filter: { dead_lettered_from: 'now' } },
        'body.filter.dead_lettered_from',
      ],
      ['with a bad JSON path', { ...named, filter: { json: '$..a=1' } }, 'body.filter.json cannot be read'],
      ['with a bad status', { ...named, filter: { status: ['PENDING', 'X'] } }, 'body.filter.status'],
      ['with a bad action', { ...named, action: 'purge', filter }, 'body.action'],
      ['with a bad ramp', { ...named, ramp: 'slowly', filter }, 'ramp'],
      ['with an endless ramp', { ...named, ramp: '1000h', filter }, 'body.ramp is 1000h; the maximum is'],
      ['with a negative rate', { ...named, rate_per_second: -1, filter }, 'body.rate_per_second'],
      ['with an impossible ratio', { ...named, halt_ratio: 2, filter }, 'body.halt_ratio'],
      ['that discards to a target', { ...named, action: 'discard', target: 'q', filter }, 'body.target'],
      ['to an unknown queue', { ...named, target: 'no-such-queue', filter }, 'no-such-queue'],
    ])('a campaign %s is refused', async (_name, campaign, message) => {
      const before = (await api.get('/api/v1/campaigns?limit=1')).body.campaigns[0]?.id
      const { status, body } = await api.post('/api/v1/campaigns', campaign)
      expect([status, body.error?.message]).toEqual([400, expect.stringContaining(message)])
      expect((await api.get('/api/v1/campaigns?limit=1')).body.campaigns[0]?.id).toBe(before)
    })
  })

  it('calls on an unknown campaign are not found', async () => {
    const paths = ['', '/letters', '/events']
    const answers = [
      ...paths.map((path) => api.get(`/api/v1/campaigns/${unknownId}${path}`)),
      api.patch(`/api/v1/campaigns/${unknownId}`, { rate_per_second: 1 }),
      ...['pause', 'resume', 'cancel'].map((step) => api.post(`/api/v1/campaigns/${unknownId}/${step}`)),
    ]
    for (const answer of await Promise.all(answers)) {
      expect(answer).toMatchObject({ status: 404, body: { error: { code: 'CAMPAIGN_NOT_FOUND' } } })
    }
    expect((await api.get(`/api/v1/campaigns/${unknownId}/letters?state=lost`)).status).toBe(400)
  })
})

import { expect, it } from 'vitest'
import { pollUntil } from '../http/poll-until.ts'
import { type Body, createEnvelope, describeLettersServers, type LettersServer } from './servers.ts'
import { lease } from './worker.ts'

const named = { name: 'after the fix', reason: 'release 7 fixes it', action: 'redrive' }

async function createLetters(api: LettersServer, count: number) {
  const queues = await api.createQueues()
  const ids = await api.capture(
    queues.dead,
    ...Array.from({ length: count }, () => createEnvelope(queues.queue)),
  )
  return { ...queues, ids }
}

/** Sends the request without a body and without a content type. */
async function postNothing(
  api: LettersServer,
  path: string,
): Promise<Readonly<{ status: number; body: Body }>> {
  const answer = await fetch(`${api.url}${path}`, { method: 'POST' })
  return { status: answer.status, body: (await answer.json()) as Body }
}

describeLettersServers('guards of changes of many letters', (api) => {
  const preview = async (spec: object): Promise<Body> =>
    (await api.post('/api/v1/campaigns/preview', { action: 'redrive', ...spec })).body
  const read = async (id: string): Promise<Body> => (await api.get(`/api/v1/campaigns/${id}`)).body
  const countPending = async (dead: string): Promise<number> =>
    (await api.get(`/api/v1/letters?queue=${dead}&status=PENDING`)).body.total

  it('a campaign is refused with both numbers if the selection has another count than expected', async () => {
    const { dead, ids } = await createLetters(api, 3)
    const selections = [
      { filter: { queue: dead } },
      { filter: { queue: dead, message: 'UPSTREAM' } },
      { ids },
    ]
    for (const selection of selections) {
      const refused = await api.post('/api/v1/campaigns', { ...named, ...selection, expected_count: 2 })
      expect(refused).toMatchObject({
        status: 409,
        body: {
          error: {
            code: 'SELECTION_CHANGED',
            message: 'the selection has 3 letters; expected_count is 2',
          },
        },
      })
    }
    expect(await countPending(dead)).toBe(3)
    const { body } = await api.post('/api/v1/campaigns', {
      ...named,
      filter: { queue: dead },
      expected_count: 3,
    })
    expect(body).toMatchObject({ expected_count: 3, limit: null })
    const sent = await pollUntil(
      () => read(body.id),
      ({ counts }) => counts.sent === 3,
    )
    expect(sent.state).toBe('running')
  })

  it('calls that name letters are refused if not exactly the expected number of them exists', async () => {
    const { dead, ids } = await createLetters(api, 3)
    const gone = '0'.repeat(27)
    for (const action of ['redrive', 'discard', 'restore']) {
      const body = { ids: [...ids, gone], reason: 'a test', expected_count: 4 }
      expect(await api.post(`/api/v1/letters/${action}`, body)).toMatchObject({
        status: 409,
        body: { error: { message: 'the selection has 3 letters; expected_count is 4' } },
      })
    }
    expect(await countPending(dead)).toBe(3)
    const first = await api.post('/api/v1/letters/discard', {
      ids,
      reason: 'a test',
      limit: 2,
      expected_count: 2,
    })
    expect(first.body).toMatchObject({ discarded: 2, letters: [{ id: ids[0] }, { id: ids[1] }] })
    expect(await countPending(dead)).toBe(1)
  })

  it('a campaign with a limit takes the letters that died first, as its preview shows', async () => {
    const { queue, dead, ids } = await createLetters(api, 12)
    for (const filter of [{ queue: dead }, { queue: dead, message: 'UPSTREAM' }]) {
      const shown = await preview({ filter, limit: 5 })
      expect(shown).toMatchObject({
        is_exact: true,
        count: 5,
        targets: [{ queue, count: 5 }],
        statuses: { PENDING: 5 },
      })
    }
    const spec = { ...named, filter: { queue: dead }, limit: 5, expected_count: 5 }
    const { body } = await api.post('/api/v1/campaigns', spec)
    await pollUntil(
      () => read(body.id),
      ({ counts }) => counts.sent === 5,
    )
    const { letters } = (await api.get(`/api/v1/campaigns/${body.id}/letters`)).body
    expect(letters.map(({ id }: Body) => id)).toEqual(ids.slice(0, 5))
    expect(await countPending(dead)).toBe(7)
    const few = await api.post('/api/v1/campaigns', { ...named, ids: ids.slice(5), limit: 2 })
    expect(few.body).toMatchObject({ size: 2, limit: 2 })
  })

  it('a discard campaign pauses after its canary and discards the rest when it is resumed', async () => {
    const { dead } = await createLetters(api, 5)
    const spec = { ...named, action: 'discard', filter: { queue: dead }, canary_count: 2 }
    const { body } = await api.post('/api/v1/campaigns', spec)
    const paused = await pollUntil(
      () => read(body.id),
      ({ state }) => state === 'paused',
    )
    expect(paused).toMatchObject({ canary_count: 2, counts: { discarded: 2, pending: 3 } })
    expect(paused.state_reason).toContain('2 letters were discarded')
    expect(await countPending(dead)).toBe(3)
    const { entries } = (await api.get(`/api/v1/audit?target=${body.id}&action=campaign.pause`)).body
    expect(entries).toMatchObject([{ actor: 'policy', reason: paused.state_reason }])
    expect((await postNothing(api, `/api/v1/campaigns/${body.id}/resume`)).status).toBe(200)
    const done = await pollUntil(
      () => read(body.id),
      ({ is_ended }) => is_ended,
    )
    expect(done).toMatchObject({ state: 'done', counts: { discarded: 5 } })
  })

  it('pause, resume and cancel of a campaign and the redrive of a letter need no body', async () => {
    const { dead, ids } = await createLetters(api, 3)
    const spec = { ...named, filter: { queue: dead }, rate_per_second: 0.001 }
    const { body } = await api.post('/api/v1/campaigns', spec)
    for (const [action, state] of [
      ['pause', 'paused'],
      ['cancel', 'cancelled'],
    ]) {
      const answer = await postNothing(api, `/api/v1/campaigns/${body.id}/${action}`)
      expect([answer.status, answer.body.state]).toEqual([200, state])
    }
    const redriven = await postNothing(api, `/api/v1/letters/${ids[2]}/redrive`)
    expect(redriven).toMatchObject({ status: 200, body: { is_started: true } })
  })

  it('a filter on a queue that does not exist is refused with the nearest name', async () => {
    const { dead } = await createLetters(api, 1)
    const misspelt = dead.replace('dead', 'daed')
    const answers = [
      await api.get(`/api/v1/letters?queue=${misspelt}`),
      await api.get(`/api/v1/letters/export?queue=${misspelt}`),
      await api.post('/api/v1/campaigns/preview', { action: 'redrive', filter: { queue: misspelt } }),
      await api.post('/api/v1/campaigns', { ...named, filter: { queue: [dead, misspelt] } }),
    ]
    for (const { status, body } of answers) {
      expect([status, body.error?.message]).toEqual([
        400,
        expect.stringContaining(
          `queue names queue "${misspelt}", which does not exist; the nearest name is "dead-`,
        ),
      ])
    }
  })

  it('a preview and a campaign name targets that are not the origin, or that nobody leases from', async () => {
    const { queue, dead } = await createLetters(api, 3)
    const other = await api.createQueues()
    const elsewhere = await preview({ filter: { queue: dead }, target: other.queue })
    expect(elsewhere.warnings).toContain(
      `3 letters do not come from the target ${other.queue}, but from ${queue} (3)`,
    )
    const idle = `queue ${queue} has no active workers: none ever asked for items`
    expect((await preview({ filter: { queue: dead } })).warnings).toContain(idle)

    const { body } = await api.post('/api/v1/campaigns', { ...named, filter: { queue: dead } })
    const sent = await pollUntil(
      () => read(body.id),
      ({ counts }) => counts.sent === 3,
    )
    expect(sent.waits_for).toBe(
      `workers have to process 3 letters that were sent; ${idle}, and 3 items are already waiting in it`,
    )
    await lease(api, queue, 1)
    expect((await read(body.id)).waits_for).toBe('workers have to process 3 letters that were sent')
  })
})

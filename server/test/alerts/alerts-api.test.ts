/** Alerts over HTTP, on whole servers whose clock the test advances. */
import { expect, it } from 'vitest'
import { createEnvelope, describeLettersServers } from '../letters-api/servers.ts'

type Body = Readonly<Record<string, unknown>>
let tests = 0

describeLettersServers('alerts over HTTP', (api) => {
  const failing = (queue: string, message: string) =>
    createEnvelope(queue, { error_details: { exception_class: 'Error', message } })
  const list = async (query: string): Promise<readonly Body[]> =>
    (await api.get(`/api/v1/alerts?${query}`)).body.alerts
  const check = () => api.setClock({ advance: '0s' })
  /** A silence of more than 30 s without a check is an outage of the server, so workers need short steps. */
  const wait = async (seconds: number) => {
    for (let left = seconds; left > 0; left -= 10) await api.setClock({ advance: `${Math.min(left, 10)}s` })
  }
  const beat = (instance: string, changes: object = {}) =>
    api.post('/api/v1/workers/heartbeat', {
      heartbeats: [{ type: 'payout', instance_id: instance, ...changes }],
    })
  const freeze = async () => api.setClock({ now: `2030-11-${10 + ++tests}T12:00:00Z` })

  it('a worker that sends no heartbeat for more than 60 s is critical, until it sends one', async () => {
    await freeze()
    const instance = `missing-${tests}`
    const query = `rule=WorkerHeartbeatMissing&state=firing&state=resolved`
    const find = async () => (await list(query)).find(({ subject }) => subject === `payout/${instance}`)
    await beat(instance)
    await check()
    await wait(60)
    expect(await find()).toBeUndefined()
    await wait(1)
    expect(await find()).toMatchObject({ state: 'firing', severity: 'critical', namespace: '_system' })
    await beat(instance)
    await check()
    expect(await find()).toMatchObject({ state: 'resolved' })
    await beat(instance, { status: 'STOPPED' })
  })

  it('a worker that processes nothing for more than 5 min is stuck if messages wait', async () => {
    await freeze()
    const instance = `stuck-${tests}`
    const find = async () =>
      (await list('rule=WorkerStuckProcessing&state=firing')).find(
        ({ subject }) => subject === `payout/${instance}`,
      )
    const report = { last_message_at: null, consumer_lag: 5 }
    for (let seconds = 0; seconds < 300; seconds += 10) {
      await beat(instance, report)
      await wait(10)
    }
    await beat(instance, report)
    await check()
    expect(await find()).toBeUndefined()
    await wait(1)
    await beat(instance, report)
    await check()
    expect(await find()).toMatchObject({ severity: 'warning', state: 'firing' })
    await beat(instance, { ...report, consumer_lag: 0 })
    await check()
    expect(await find()).toBeUndefined()
    await beat(instance, { status: 'STOPPED' })
  })

  it('the letters of a financial queue are critical until they are resolved or discarded', async () => {
    await freeze()
    const { queue, dead } = await api.createQueues({ letter_class: 'financial' })
    const ids = await api.capture(dead, failing(queue, 'card refused'))
    await check()
    const [alert] = await list(`queue=${dead}`)
    expect(alert).toMatchObject({
      rule: 'DLQFinancial',
      severity: 'critical',
      state: 'firing',
      subject: dead,
      queue: dead,
      count: 1,
      summary: `dead queue ${dead} has 1 letter`,
      sample_error: 'card refused',
      group: null,
      ended_at: null,
      acknowledged: null,
    })
    expect((await api.get(`/api/v1/alerts/${alert?.id}`)).body).toEqual(alert)
    await api.post('/api/v1/letters/discard', { ids, reason: 'test' })
    await check()
    expect(await list(`queue=${dead}`)).toMatchObject([{ id: alert?.id, state: 'resolved' }])
  })

  it('a resolved group that gets a letter has an alert, which ends when a person decides', async () => {
    await freeze()
    const { queue, dead } = await api.createQueues()
    await api.capture(dead, failing(queue, 'no route'))
    const [{ id }] = (await api.get(`/api/v1/groups?queue=${dead}`)).body.groups
    await api.post(`/api/v1/groups/${id}/resolve`)
    await check()
    const regressed = () => list(`queue=${dead}&rule=GroupRegressed`)
    expect(await regressed()).toEqual([])
    await api.capture(dead, failing(queue, 'no route'))
    await check()
    expect(await regressed()).toMatchObject([
      { state: 'firing', subject: `group/${id}`, group_id: id, group: 'no route', sample_error: 'no route' },
    ])
    await api.post(`/api/v1/groups/${id}/acknowledge`)
    await check()
    expect(await regressed()).toMatchObject([{ state: 'resolved' }])
  })

  it('the client changes rules, and lists, acknowledges, mutes and resolves alerts', async () => {
    await freeze()
    const { client } = api
    const { queue, dead } = await api.createQueues()
    const rule = await client.putAlertRule(`rule-${dead}`, {
      severity: 'info',
      condition: { type: 'letters', count_min: 1, queues: [dead] },
      hold: '10s',
    })
    expect(rule).toMatchObject({ source: 'api', severity: 'info', hold: '10s' })
    expect((await client.listAlertRules()).map(({ name }) => name)).toContain(rule.name)
    await api.capture(dead, failing(queue, 'no route'))
    await check()
    await wait(10)
    const { alerts } = await client.listAlerts({ rule: rule.name, state: ['firing'] })
    expect(alerts).toMatchObject([{ subject: dead, severity: 'info', count: 1 }])
    const id = alerts[0]?.id ?? ''
    expect((await client.acknowledgeAlert(id, { note: 'looking' })).acknowledged?.note).toBe('looking')
    expect((await client.muteAlert(id, '2099-01-01T00:00:00Z')).muted?.until).toContain('2099-01-01')
    expect((await client.resolveAlert(id, { reason: 'known' })).state).toBe('resolved')
    expect((await client.getAlert(id)).resolved).not.toBeNull()
    await client.deleteAlertRule(rule.name)
    await expect(client.getAlertRule(rule.name)).rejects.toMatchObject({ code: 'ALERT_RULE_NOT_FOUND' })
  })

  it('alerts are acknowledged, muted and resolved with a note, and only while they fire', async () => {
    await freeze()
    const { queue, dead } = await api.createQueues()
    await api.capture(dead, failing(queue, 'no route'))
    await check()
    const [alert] = await list(`queue=${dead}`)
    const act = (action: string, body: object) => api.post(`/api/v1/alerts/${alert?.id}/${action}`, body)
    expect((await act('acknowledge', { note: 'I look at it' })).body).toMatchObject({
      acknowledged: { actor: expect.stringMatching(/./), note: 'I look at it' },
    })
    const until = '2099-01-01T00:00:00.000000Z'
    expect((await act('mute', { until })).body).toMatchObject({ muted: { until, note: '' } })
    expect((await act('mute', { until: '2001-01-01T00:00:00Z' })).status).toBe(400)
    expect((await act('resolve', { reason: 'known' })).body).toMatchObject({
      state: 'resolved',
      resolved: { note: '' },
    })
    const refused = await act('acknowledge', {})
    expect([refused.status, refused.body.error.code]).toEqual([409, 'ALERT_STATE'])
    await check()
    expect(await list(`queue=${dead}&state=firing`)).toEqual([])
    expect((await api.get('/api/v1/alerts/unknown')).body.error.code).toBe('ALERT_NOT_FOUND')
    const { entries } = (await api.get(`/api/v1/audit?target=alert/${alert?.id}`)).body
    expect(entries.map(({ action }: { action: string }) => action)).toEqual([
      'alert.resolve',
      'alert.mute',
      'alert.acknowledge',
    ])
    expect(entries[0]).toMatchObject({ reason: 'known', details: { rule: 'DLQNonFinancial', subject: dead } })
  })

  it('a rule is created, changed and deleted, and its alerts follow', async () => {
    await freeze()
    const { queue, dead } = await api.createQueues()
    const name = `Backlog${tests}`
    const path = `/api/v1/alerts/rules/${name}`
    const condition = { type: 'letters', queues: [`${dead}*`], count_min: 2 }
    const created = await api.put(path, { condition, severity: 'info', hold: '90s' })
    expect(created.body).toEqual({
      name,
      namespace: '_system',
      source: 'api',
      description: '',
      is_enabled: true,
      severity: 'info',
      condition: { ...condition, letter_classes: [], excluded_letter_classes: [] },
      hold: '1m30s',
      clear_after: '0s',
      group_wait: '30s',
      repeat_interval: '4h0m0s',
      channels: null,
    })
    await api.capture(dead, failing(queue, 'one'), failing(queue, 'two'))
    await check()
    const states = async () => (await list(`rule=${name}`)).map(({ state }) => state)
    expect(await states()).toEqual(['pending'])
    await api.setClock({ advance: '89.999999s' })
    expect(await states()).toEqual(['pending'])
    await api.setClock({ advance: '1us' })
    expect(await states()).toEqual(['firing'])
    expect((await api.put(path, { condition, is_enabled: false })).body).toMatchObject({ is_enabled: false })
    await check()
    expect(await states()).toEqual(['resolved'])
    const remove = () => fetch(`${api.url}${path}`, { method: 'DELETE' }).then((answer) => answer.status)
    expect(await remove()).toBe(200)
    expect(await remove()).toBe(404)
    const wrong = await api.put(path, { condition: { type: 'inflow', count_min: 1 }, hold: 'soon' })
    expect(wrong.status).toBe(400)
    expect(JSON.stringify(wrong.body)).toMatch(/body\.condition\.window is missing/)
  })

  it('a built-in rule is disabled, and gets its values again when the change is deleted', async () => {
    await freeze()
    const path = '/api/v1/alerts/rules/DLQNonFinancial'
    const before = (await api.get(path)).body
    expect(before).toMatchObject({ source: 'built-in', is_enabled: true, severity: 'warning' })
    expect((await api.put(path, { is_enabled: false })).body).toEqual({
      ...before,
      source: 'api',
      is_enabled: false,
    })
    const { queue, dead } = await api.createQueues()
    await api.capture(dead, failing(queue, 'no route'))
    await check()
    expect(await list(`queue=${dead}`)).toEqual([])
    await fetch(`${api.url}${path}`, { method: 'DELETE' })
    expect((await api.get(path)).body).toEqual(before)
    await check()
    expect(await list(`queue=${dead}`)).toMatchObject([{ rule: 'DLQNonFinancial', state: 'firing' }])
    const fixed = await fetch(`${api.url}${path}`, { method: 'DELETE' })
    expect([fixed.status, await fixed.json()]).toMatchObject([409, { error: { code: 'ALERT_RULE_FIXED' } }])
  })

  it('the history is listed in pages', async () => {
    await freeze()
    const queues = await Promise.all(Array.from({ length: 5 }, () => api.createQueues()))
    for (const { queue, dead } of queues) await api.capture(dead, failing(queue, 'no route'))
    await check()
    const all = await list('rule=DLQNonFinancial&limit=500')
    const ids: unknown[] = []
    for (let cursor = ''; ; ) {
      const { body } = await api.get(`/api/v1/alerts?rule=DLQNonFinancial&limit=2${cursor}`)
      ids.push(...body.alerts.map(({ id }: Body) => id))
      if (body.next_cursor === null) break
      cursor = `&cursor=${body.next_cursor}`
    }
    expect(ids).toEqual(all.map(({ id }) => id))
    expect(ids.length).toBeGreaterThanOrEqual(5)
    const from = all[0]?.started_at
    expect((await list(`started_from=${from}&rule=DLQNonFinancial`)).length).toBeGreaterThanOrEqual(1)
    expect(await list(`started_from=2035-01-01T00:00:00Z`)).toEqual([])
    expect((await api.get('/api/v1/alerts?started_from=soon')).status).toBe(400)
    expect((await api.get('/api/v1/alerts?state=lost')).status).toBe(400)
  })
})

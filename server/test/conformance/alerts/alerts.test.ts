import { expect, it } from 'vitest'
import type { AccessChange } from '../../../src/storage/contract/access.ts'
import type { PutAlertConfig, StoredAlert } from '../../../src/storage/contract/alerts.ts'
import { hour, minute, noon } from '../../make.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('alerts', (given) => {
  let tests = 0
  /** Alerts outlive a test, so each test has its own rule. */
  const aTest = () => {
    const rule = `rule-${++tests}`
    const anAlert = (id: string, changes: Partial<StoredAlert> = {}): StoredAlert => ({
      id: `${rule}-${id}`,
      version: 0,
      namespace: 'shop',
      rule,
      subject: id,
      queue: null,
      severity: 'WARNING',
      state: 'firing',
      isTracked: true,
      startedAt: noon,
      endedAt: null,
      document: { note: `about ${id}` },
      ...changes,
    })
    const put = (...alerts: readonly StoredAlert[]) => given.run({ op: 'put-alerts', alerts })
    const list = async (query: object = {}) =>
      (await given.storage.listAlerts({ rule, countMax: 100, ...query })).map(({ id }) =>
        id.slice(rule.length + 1),
      )
    return { rule, anAlert, put, list }
  }

  it('an alert is stored with all its fields, and each write adds 1 to its version', async () => {
    const { anAlert, put } = aTest()
    const alert = anAlert('a', { queue: 'orders-dead', endedAt: noon + hour, document: { text: 'é\u0000' } })
    await put(alert)
    expect(await given.storage.getAlert(alert.id)).toEqual({ ...alert, version: 1 })
    const changed = { ...alert, version: 1, state: 'resolved', isTracked: false, document: {} } as const
    await put(changed)
    expect(await given.storage.getAlert(alert.id)).toEqual({ ...changed, version: 2 })
    expect(await given.storage.getAlert('unknown')).toBeNull()
  })

  it('a write with an alert that was changed in the meantime stores none of its alerts', async () => {
    const { anAlert, put, list } = aTest()
    await put(anAlert('a'))
    await expectRefusal(put(anAlert('b'), anAlert('a')), 'ALERT_CHANGED')
    await expectRefusal(put(anAlert('b'), anAlert('a', { version: 2 })), 'ALERT_CHANGED')
    await expectRefusal(put(anAlert('b', { version: 1 })), 'ALERT_CHANGED')
    expect(await list()).toEqual(['a'])
  })

  it('a subject has one tracked alert of a rule in each namespace', async () => {
    const { anAlert, put, list } = aTest()
    await put(anAlert('a', { subject: 's' }))
    await expectRefusal(put(anAlert('b', { subject: 's' })), 'ALERT_CHANGED')
    await put(anAlert('c', { subject: 's', namespace: 'bank' }))
    // The end of one alert and the start of the next are one write.
    await put(anAlert('d', { subject: 's' }), anAlert('a', { subject: 's', version: 1, isTracked: false }))
    await expectRefusal(put(anAlert('a', { subject: 's', version: 2 })), 'ALERT_CHANGED')
    expect(await list({ isTracked: true })).toEqual(['d', 'c'])
  })

  it('alerts are listed newest first by namespace, state, severity, queue and time, in pages', async () => {
    const { anAlert, put, list } = aTest()
    await put(
      anAlert('1', { namespace: 'bank', severity: 'CRITICAL' }),
      anAlert('2', { queue: 'orders-dead', startedAt: noon + minute }),
      anAlert('3', { state: 'pending', startedAt: noon + 2 * minute }),
      anAlert('4', { state: 'resolved', isTracked: false, endedAt: noon }),
    )
    expect(await list()).toEqual(['4', '3', '2', '1'])
    expect(await list({ namespaces: ['shop', 'x\u0000'] })).toEqual(['4', '3', '2'])
    expect(await list({ namespaces: [] })).toEqual([])
    expect(await list({ states: ['firing', 'pending'] })).toEqual(['3', '2', '1'])
    expect(await list({ isTracked: false })).toEqual(['4'])
    expect(await list({ severity: 'CRITICAL' })).toEqual(['1'])
    expect(await list({ queue: 'orders-dead' })).toEqual(['2'])
    expect(await list({ startedFrom: noon + minute, startedUntil: noon + 2 * minute })).toEqual(['2'])
    expect(await list({ countMax: 2 })).toEqual(['4', '3'])
    expect(await list({ countMax: 2, beforeId: anAlert('3').id })).toEqual(['2', '1'])
  })

  it('counts of alerts have those that are pending or firing, by rule, state and severity', async () => {
    const { rule, anAlert, put } = aTest()
    await put(
      anAlert('1'),
      anAlert('2'),
      anAlert('3', { state: 'pending' }),
      anAlert('4', { state: 'resolved' }),
      anAlert('5', { state: 'resolved', isTracked: false }),
    )
    const counts = await given.storage.countAlerts()
    expect(counts.filter((each) => each.rule === rule)).toEqual([
      { rule, state: 'firing', severity: 'WARNING', count: 2 },
      { rule, state: 'pending', severity: 'WARNING', count: 1 },
    ])
  })

  it('alerts are removed unless they were changed in the meantime', async () => {
    const { anAlert, put, list } = aTest()
    await put(anAlert('a'), anAlert('b'))
    const remove = (...ids: readonly string[]) =>
      given.run({ op: 'remove-alerts', alerts: ids.map((id) => ({ id: anAlert(id).id, version: 1 })) })
    await remove('a')
    await expectRefusal(remove('b', 'a'), 'ALERT_CHANGED')
    expect(await list()).toEqual(['b'])
  })

  it('old alerts that are not tracked are pruned, and the oldest beyond the number that is kept', async () => {
    const { anAlert, put, list } = aTest()
    const ended = (endedAt: number) => ({ state: 'resolved', isTracked: false, endedAt }) as const
    await put(
      anAlert('1', ended(noon - hour)),
      anAlert('2', ended(noon + hour)),
      anAlert('3', { ...ended(noon - hour), isTracked: true }),
    )
    const prune = (keptMax: number) =>
      ({ op: 'prune-alerts', before: noon, keptMax, countMax: 1_000 }) as const
    expect((await given.run(prune(1_000))).removed).toBeGreaterThanOrEqual(1)
    expect(await list()).toEqual(['3', '2'])
    await given.run(prune(0))
    expect(await list()).toEqual(['3'])
  })
})

describeStores('rules and channels of alerts', (given) => {
  let tests = 0
  const aConfig = (changes: Partial<PutAlertConfig> = {}): PutAlertConfig => ({
    op: 'put-alert-config',
    kind: 'channel',
    name: `config-${++tests}`,
    namespace: 'shop',
    version: 0,
    document: { type: 'slack' },
    secret: 'https://hooks.example.com/1',
    countMax: 1_000,
    ...changes,
  })

  it('a config is stored with its secret, which stays until a write has another one', async () => {
    const { op: _, countMax: __, ...config } = aConfig()
    const put = (changes: Partial<PutAlertConfig>) => given.run(aConfig({ ...config, ...changes }))
    const read = () => given.storage.getAlertConfig('channel', config.name)
    await put({})
    expect(await read()).toEqual({ ...config, version: 1 })
    const { secret: ___, ...withoutSecret } = aConfig({ ...config, version: 1, document: { type: 'teams' } })
    await given.run({ ...withoutSecret, namespace: 'other' })
    expect(await read()).toEqual({ ...config, version: 2, document: { type: 'teams' } })
    await put({ version: 2, secret: null })
    expect(await read()).toMatchObject({ version: 3, secret: null })
    expect(await given.storage.getAlertConfig('rule', config.name)).toBeNull()
  })

  it('a config that was changed in the meantime is neither stored nor deleted', async () => {
    const config = aConfig()
    await given.run(config)
    await expectRefusal(given.run(config), 'ALERT_CONFIG_CHANGED')
    await expectRefusal(given.run({ ...config, version: 2 }), 'ALERT_CONFIG_CHANGED')
    const { kind, name } = config
    const remove = (version: number) => given.run({ op: 'delete-alert-config', kind, name, version })
    await expectRefusal(remove(2), 'ALERT_CONFIG_CHANGED')
    await remove(1)
    expect(await given.storage.getAlertConfig(kind, name)).toBeNull()
  })

  it('configs are listed by kind and namespace in the order of their names', async () => {
    const names = ['Za', 'aa', 'ab'].map((name) => `list-${name}`)
    for (const name of names.toReversed()) await given.run(aConfig({ name, kind: 'rule', secret: null }))
    await given.run(aConfig({ name: 'list-bank', kind: 'rule', namespace: 'bank' }))
    await given.run(aConfig({ name: 'list-channel' }))
    const list = async (namespaces?: readonly string[]) =>
      (await given.storage.listAlertConfigs({ kind: 'rule', ...(namespaces && { namespaces }) })).map(
        ({ name }) => name,
      )
    expect(await list(['shop'])).toEqual(names)
    expect(await list()).toEqual([...names, 'list-bank'])
    expect(await list([])).toEqual([])
  })

  it('the alerts, rules and channels of a namespace are deleted with it', async () => {
    const name = `tenant-${++tests}`
    const change = async (changed: AccessChange) => {
      const { version } = await given.storage.readAccessState()
      await given.run({ op: 'change-access', version, changes: [changed] })
    }
    const namespace = { name, description: '', keyTag: '', createdAt: noon }
    await change({ change: 'put-namespace', namespace })
    const config = aConfig({ namespace: name })
    await given.run(config)
    await change({ change: 'delete-namespace', name })
    expect(await given.storage.getAlertConfig('channel', config.name)).toBeNull()
  })

  it('the number of configs of a kind is limited', async () => {
    const { length } = await given.storage.listAlertConfigs({ kind: 'channel' })
    const config = aConfig({ countMax: length + 1 })
    await given.run(config)
    await expectRefusal(given.run(aConfig({ countMax: length + 1 })), 'ALERT_CONFIGS_FULL')
    await given.run({ ...config, version: 1 })
  })
})

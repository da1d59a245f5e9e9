/** Rules are evaluated on real stores, with a clock and findings that the test controls. */
import { expect, it } from 'vitest'
import type { ConsumerFact, TopicFact } from '../../src/core/alerts/facts.ts'
import type { AlertRule } from '../../src/core/alerts/rule.ts'
import { decodeRule } from '../../src/core/alerts/rule-document.ts'
import type { Finding, FindingRule, Severity } from '../../src/core/watching/findings.ts'
import type { Alerts } from '../../src/ops/alerts/alerts.ts'
import { toAlert } from '../../src/ops/alerts/stored-alert.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { aLetter, createLetterActions } from '../conformance/support/letter-actions.ts'
import { describeDurableStores } from '../conformance/support/test-stores.ts'
import { aFailure, day, hour, minute, noon, second } from '../make.ts'
import { createTestAlerts, listNotifications, type TestAlertOptions } from './test-alerts.ts'

const person = { actor: 'ana', reason: '', requestId: '' }

function aRule(name: string, condition: object, changes: object = {}): AlertRule {
  const fields = { group_wait: '0s', condition, ...changes }
  const decoded = decodeRule(name, '_system', fields)
  if ('problems' in decoded) throw new Error(JSON.stringify(decoded.problems))
  return decoded.rule
}

const aFinding = (rule: FindingRule, severity: Severity, changes: Partial<Finding> = {}): Finding => ({
  rule,
  severity,
  subject: 'payout/payout-1',
  namespace: '_system',
  since: noon,
  message: `finding ${rule}`,
  ...changes,
})

describeDurableStores('the evaluation of rules', (given) => {
  const actions = createLetterActions(given)
  let tests = 0
  /** Alerts outlive a test, so each test has its own day, and rules with names of their own. */
  const aTest = async (rules: (name: string) => readonly AlertRule[], options: TestAlertOptions = {}) => {
    const start = noon + ++tests * day
    const name = `Rule${tests}`
    const clock = { at: start, now: () => clock.at }
    const queue = await given.queue()
    const create = (own: TestAlertOptions = {}, storage: Storage = given.storage) =>
      createTestAlerts(storage, storage, { clock, queue, rules: rules(name), ...options, ...own })
    const alerts = create()
    const list = async (rule = name) => (await given.storage.listAlerts({ rule, countMax: 100 })).map(toAlert)
    const states = async (rule = name) => (await list(rule)).map(({ state }) => state)
    const notifications = async (rule = name) =>
      (await listNotifications(given.storage, queue)).filter((each) => each.rule === rule)
    const kinds = async (rule = name) => (await notifications(rule)).map(({ kind }) => kind)
    /** A pass at this time after the start. */
    const at = async (us: number, by: Alerts = alerts) => {
      clock.at = start + us
      await by.pass()
    }
    return { start, name, clock, queue, alerts, create, list, states, notifications, kinds, at }
  }
  const failing = (message: string) =>
    aLetter({ failure: aFailure({ errorClass: 'TimeoutError', message, stack: '' }) })

  it('a rule about letters fires after its hold time and is resolved when the letters are gone', async () => {
    const dead = await given.queue()
    const { start, list, states, kinds, notifications, at } = await aTest((name) => [
      aRule(name, { type: 'letters', count_min: 2, queues: [dead] }, { hold: '1m', severity: 'critical' }),
    ])
    const ids = await actions.capture(dead, [failing('no route'), failing('no route')], start)
    await at(0)
    expect(await states()).toEqual(['pending'])
    await at(minute - 1)
    expect(await states()).toEqual(['pending'])
    await at(minute)
    expect(await list()).toMatchObject([
      {
        state: 'firing',
        severity: 'critical',
        queue: dead,
        count: 2,
        summary: `dead queue ${dead} has 2 letters`,
        sampleError: 'no route',
        startedAt: start,
        firedAt: start + minute,
      },
    ])
    expect(await notifications()).toMatchObject([
      { kind: 'firing', severity: 'critical', alerts: [{ queue: dead, sampleError: 'no route', count: 2 }] },
    ])
    await actions.discard([ids[0] ?? ''], start)
    await at(2 * minute)
    expect(await states()).toEqual(['resolved'])
    expect(await kinds()).toEqual(['firing', 'resolved'])
  })

  it('the built-in rules about letters fire by the class of the queue', async () => {
    const [financial, standard] = [await given.queue({ letterClass: 'financial' }), await given.queue()]
    const { start, list, at } = await aTest(() => [])
    await actions.capture(financial, [failing('one')], start)
    await actions.capture(standard, [failing('two')], start)
    await at(0)
    const firing = async (rule: string) =>
      (await list(rule))
        .filter(({ state }) => state === 'firing')
        .map(({ queue, severity }) => [queue, severity])
    expect(await firing('DLQFinancial')).toEqual([[financial, 'critical']])
    expect(await firing('DLQNonFinancial')).toContainEqual([standard, 'warning'])
    expect(await firing('DLQNonFinancial')).not.toContainEqual([financial, 'warning'])
  })

  it('a rule about the inflow counts the open letters that died within its window', async () => {
    const dead = await given.queue()
    const { start, states, at } = await aTest((name) => [
      aRule(name, { type: 'inflow', count_min: 2, window: '5m', queues: [dead] }),
    ])
    const died = (at: number) => ({ ...failing('late'), deadLetteredAt: at })
    await actions.capture(dead, [died(start), died(start + minute)], start)
    await at(minute)
    expect(await states()).toEqual(['firing'])
    await at(5 * minute)
    expect(await states()).toEqual(['firing'])
    await at(5 * minute + 1)
    expect(await states()).toEqual(['resolved'])
  })

  it('a rule about the age fires when the oldest open letter is that old, and not for ended letters', async () => {
    const dead = await given.queue()
    const { start, states, list, at } = await aTest((name) => [
      aRule(name, { type: 'oldest-letter', age: '24h', queues: [dead] }),
    ])
    const died = (ago: number) => ({ ...failing('late'), deadLetteredAt: start - ago })
    const [old = '', ended = ''] = await actions.capture(dead, [died(hour), died(2 * hour), died(0)], start)
    await actions.discard([ended], start)
    await at(23 * hour - 1)
    expect(await states()).toEqual([])
    await at(23 * hour)
    expect(await list()).toMatchObject([{ state: 'firing', startedAt: start + 23 * hour, count: 2 }])
    await actions.discard([old], start)
    await at(23 * hour + second)
    expect(await states()).toEqual(['resolved'])
  })

  it('a new group and a regressed group have alerts until a person decides about the group', async () => {
    const dead = await given.queue()
    const { start, name, list, states, at } = await aTest((rule) => [
      aRule(rule, { type: 'group', kinds: ['new'], queues: [dead] }),
      aRule(`${rule}-again`, { type: 'group', kinds: ['regressed'], queues: [dead] }),
    ])
    await actions.capture(dead, [failing('no route')], start)
    await at(0)
    const [alert] = await list()
    expect(alert).toMatchObject({
      state: 'firing',
      queue: dead,
      groupTitle: 'no route',
      sampleError: 'no route',
    })
    expect(await given.storage.listGroupNotices({ countMax: 10 })).toEqual([])
    await at(hour)
    expect(await states()).toEqual(['firing'])
    const decide = (state: 'resolved' | 'acknowledged', changedAt: number) =>
      given.run({
        op: 'set-group-lifecycle',
        groupId: alert?.groupId ?? 0,
        lifecycle: { state, changedAt, mutedUntil: null, actor: 'ana', note: '' },
      })
    await decide('resolved', start + hour)
    await at(hour + 1)
    expect(await states()).toEqual(['resolved'])
    await actions.capture(dead, [failing('no route')], start + 2 * hour)
    await at(2 * hour)
    expect(await states(`${name}-again`)).toEqual(['firing'])
    await decide('acknowledged', start + 2 * hour)
    await at(2 * hour + 1)
    expect(await states(`${name}-again`)).toEqual(['resolved'])
  })

  it('an alert about a group ends after its time, although nobody decided', async () => {
    const dead = await given.queue()
    const { start, states, at } = await aTest((name) => [
      aRule(name, { type: 'group', kinds: ['new'], queues: [dead], active_for: '1h' }),
    ])
    await actions.capture(dead, [failing('no route')], start)
    await at(0)
    await at(hour - 1)
    expect(await states()).toEqual(['firing'])
    await at(hour)
    expect(await states()).toEqual(['resolved'])
  })

  it.each([
    ['WorkerHeartbeatMissing', 'worker-missing', 'CRITICAL', 'critical'],
    ['WorkerStuckProcessing', 'worker-stuck', 'WARNING', 'warning'],
    ['WorkerDraining', 'worker-draining', 'WARNING', 'warning'],
    ['WorkerExpected', 'worker-expected', 'WARNING', 'warning'],
    ['ConsumerLagCritical', 'lag', 'CRITICAL', 'critical'],
  ] as const)(
    'the built-in rule %s fires with its finding and is resolved with it',
    async (rule, found, severity, shown) => {
      let findings: readonly Finding[] = []
      const { start, list, kinds, at } = await aTest(() => [], { findings: () => findings })
      await at(0)
      const before = (await list(rule)).length
      findings = [aFinding(found, severity, { since: start, subject: `s-${start}` })]
      await at(second)
      const newest = async () => (await list(rule))[0]
      expect((await list(rule)).length).toBe(before + 1)
      expect(await newest()).toMatchObject({ state: 'firing', severity: shown, subject: `s-${start}` })
      await at(30 * second + second)
      expect(await kinds(rule)).toEqual(['firing'])
      findings = []
      await at(32 * second)
      expect(await newest()).toMatchObject({ state: 'resolved', endedAt: start + 32 * second })
      await at(62 * second)
      expect(await kinds(rule)).toEqual(['firing', 'resolved'])
    },
  )

  it('an alert about lag stays as it is while its cluster cannot be reached', async () => {
    let findings: readonly Finding[] = [aFinding('lag', 'CRITICAL', { subject: 'main/workers/orders' })]
    let unknownClusters: readonly string[] = []
    const { states, at } = await aTest((name) => [aRule(name, { type: 'finding', findings: ['lag'] })], {
      findings: () => findings,
      unknownClusters: () => unknownClusters,
    })
    await at(0)
    findings = []
    unknownClusters = ['main']
    await at(minute)
    expect(await states()).toEqual(['firing'])
    unknownClusters = []
    await at(2 * minute)
    expect(await states()).toEqual(['resolved'])
  })

  it('stopped consumers, topics near their retention and wrong counts have alerts', async () => {
    const consumer: ConsumerFact = { channelId: 'orders', consumerId: 'shop', status: 'held', since: noon }
    const topic: TopicFact = {
      cluster: 'main',
      topic: 'a.dlq',
      queue: 'a',
      unreadCount: 7,
      isLosingSoon: true,
    }
    let isWrong = true
    const { name, list, at } = await aTest(
      (rule) => [
        aRule(rule, { type: 'consumer', statuses: ['held'] }),
        aRule(`${rule}-topic`, { type: 'kafka-retention' }),
        aRule(`${rule}-drift`, { type: 'count-drift' }),
      ],
      {
        consumers: () => (isWrong ? [consumer] : []),
        topics: () => [{ ...topic, isLosingSoon: isWrong }],
        countDrift: () => (isWrong ? 2 : 0),
      },
    )
    const show = async () =>
      (await Promise.all([name, `${name}-topic`, `${name}-drift`].map(list))).map(([alert]) => [
        alert?.state,
        alert?.subject,
        alert?.count,
      ])
    await at(0)
    expect(await show()).toEqual([
      ['firing', 'orders/shop', null],
      ['firing', 'main/a.dlq', 7],
      ['firing', 'counts', 2],
    ])
    isWrong = false
    await at(second)
    expect((await show()).map(([state]) => state)).toEqual(['resolved', 'resolved', 'resolved'])
  })

  it('two servers that evaluate at the same time store one alert and one notification', async () => {
    const dead = await given.queue()
    const { start, kinds, list, create, at } = await aTest((name) => [
      aRule(name, { type: 'letters', queues: [dead] }),
    ])
    await actions.capture(dead, [failing('no route')], start)
    const other = given.name === 'PostgreSQL' ? await given.testStore.open() : given.storage
    const servers = [create({ owner: 'a' }), create({ owner: 'b' }, other)] as const
    await Promise.all(servers.flatMap((server) => [at(0, server), at(0, server)]))
    expect(await list()).toHaveLength(1)
    expect(await kinds()).toEqual(['firing'])
    for (const server of servers) await server.close()
    if (other !== given.storage) await other.close()
  })

  it('another server takes over when the one that evaluates is gone, and continues with its alerts', async () => {
    const dead = await given.queue()
    const { start, states, kinds, create, at } = await aTest((name) => [
      aRule(name, { type: 'letters', queues: [dead] }, { hold: '30s', group_wait: '30s' }),
    ])
    await actions.capture(dead, [failing('no route')], start)
    const [first, second_] = [create({ owner: 'a' }), create({ owner: 'b' })]
    await at(0, first)
    await at(30 * second, first)
    expect(await states()).toEqual(['firing'])
    // The first server is killed: it does not release its lock.
    await at(59 * second, second_)
    expect(await kinds()).toEqual([])
    await at(2 * minute, second_)
    expect(await kinds()).toEqual(['firing'])
    await second_.close()
  })

  it('a server that lost its lock writes nothing', async () => {
    const dead = await given.queue()
    const { start, states, create, clock, at } = await aTest((name) => [
      aRule(name, { type: 'letters', queues: [dead] }),
    ])
    const stalled = create({
      owner: 'a',
      findings: () => {
        throw new Error('this server stalls')
      },
    })
    clock.at = start
    await expect(stalled.pass()).rejects.toThrow('stalls')
    const [lock] = await given.storage.write([
      { op: 'acquire-lock', name: 'alerts', owner: 'a', now: start, deadline: start + minute },
    ] as const)
    const other = create({ owner: 'b' })
    await actions.capture(dead, [failing('no route')], start)
    await at(2 * minute, other)
    expect(await states()).toEqual(['firing'])
    if (lock === null) throw new Error('the lock was not free')
    await expect(
      given.storage.write([
        { op: 'fence', lock },
        { op: 'put-alerts', alerts: [] },
      ]),
    ).rejects.toMatchObject({ code: 'LOCK_LOST' })
    await other.close()
  })

  it('a restart neither loses nor repeats a notification', async () => {
    const dead = await given.queue()
    const { start, kinds, create, at } = await aTest((name) => [
      aRule(name, { type: 'letters', queues: [dead] }, { group_wait: '30s', repeat_interval: '1h' }),
    ])
    await actions.capture(dead, [failing('no route')], start)
    for (const us of [0, 29 * second, 30 * second, 31 * second, hour, hour + 30 * second])
      await at(us, create())
    expect(await kinds()).toEqual(['firing', 'repeated'])
  })

  it.each([
    ['before its write', false],
    ['after its write, without the answer', true],
  ] as const)('a pass that ends %s is repeated, and notifies once', async (_, isWritten) => {
    const dead = await given.queue()
    const { start, name, kinds, list, clock, queue, at } = await aTest((rule) => [
      aRule(rule, { type: 'letters', queues: [dead] }),
    ])
    await actions.capture(dead, [failing('no route')], start)
    let isFailing = true
    const engine: Pick<Storage, 'write'> = {
      write: async (commands) => {
        const isPass = isFailing && commands.some(({ op }) => op === 'put-alerts')
        if (isPass && !isWritten) throw new Error('the server is gone')
        const results = await given.storage.write(commands)
        if (isPass) throw new Error('the server is gone')
        return results
      },
    }
    const rules = [aRule(name, { type: 'letters', queues: [dead] })]
    const failingServer = createTestAlerts(given.storage, engine, { clock, queue, rules })
    await expect(at(0, failingServer)).rejects.toThrow('the server is gone')
    expect(await kinds()).toEqual(isWritten ? ['firing'] : [])
    isFailing = false
    await at(second, failingServer)
    await at(2 * second)
    expect(await kinds()).toEqual(['firing'])
    expect(await list()).toHaveLength(1)
  })

  it('people acknowledge, mute and resolve alerts, with a row in the audit log', async () => {
    const dead = await given.queue()
    const { start, list, states, kinds, alerts, at } = await aTest((name) => [
      aRule(name, { type: 'letters', queues: [dead] }, { repeat_interval: '1m' }),
    ])
    const [letter = ''] = await actions.capture(dead, [failing('no route')], start)
    await at(0)
    const [{ id } = { id: '' }] = await list()
    await alerts.decide(id, { action: 'mute', note: '', until: start + 10 * minute }, person)
    await at(5 * minute)
    expect(await kinds()).toEqual(['firing'])
    await at(10 * minute)
    expect(await kinds()).toEqual(['firing', 'repeated'])
    await alerts.decide(id, { action: 'acknowledge', note: ' on it ' }, person)
    await at(20 * minute)
    expect(await kinds()).toEqual(['firing', 'repeated'])
    const resolved = await alerts.decide(id, { action: 'resolve', note: 'known' }, person)
    expect(resolved).toMatchObject({
      state: 'resolved',
      acknowledged: { by: 'ana', note: 'on it' },
      resolved: { by: 'ana', note: 'known', at: start + 20 * minute },
    })
    await at(21 * minute)
    expect(await kinds()).toEqual(['firing', 'repeated', 'resolved'])
    await at(30 * minute)
    expect(await states()).toEqual(['resolved'])
    await expect(alerts.decide(id, { action: 'acknowledge', note: '' }, person)).rejects.toMatchObject({
      code: 'ALERT_STATE',
    })
    // Once the condition was false, the next letter is a new alert.
    await actions.discard([letter], start + 30 * minute)
    await at(31 * minute)
    await actions.capture(dead, [failing('again')], start + 31 * minute)
    await at(32 * minute)
    expect(await states()).toEqual(['firing', 'resolved'])
    const audit = await given.storage.listAudit({ target: `alert/${id}`, countMax: 10 })
    expect(audit.map(({ action, actor }) => [action, actor])).toEqual([
      ['alert.resolve', 'ana'],
      ['alert.acknowledge', 'ana'],
      ['alert.mute', 'ana'],
    ])
  })

  it('many letters and groups after an outage are one notification for each rule', async () => {
    const dead = await Promise.all(Array.from({ length: 25 }, () => given.queue()))
    const { start, name, notifications, at } = await aTest((rule) => [
      aRule(rule, { type: 'letters', queues: dead }, { group_wait: '30s' }),
      aRule(`${rule}-groups`, { type: 'group', kinds: ['new'], queues: dead }, { group_wait: '30s' }),
    ])
    for (const each of dead) await actions.capture(each, [failing(`cause of ${each}`)], start)
    for (const us of [hour, hour + 10 * second, hour + 30 * second, hour + 40 * second]) await at(us)
    expect(await notifications()).toMatchObject([{ kind: 'firing', moreAlerts: 5 }])
    expect(await notifications(`${name}-groups`)).toMatchObject([{ kind: 'firing', moreAlerts: 5 }])
  })

  it('errors in notifications are redacted by the rules of the queue', async () => {
    const dead = await given.queue({
      redaction: { rules: [{ pattern: 'card (\\d+)' }], isContentShown: true },
    })
    const { start, notifications, list, at } = await aTest((name) => [
      aRule(name, { type: 'letters', queues: [dead] }),
    ])
    await actions.capture(dead, [failing('card 4711 refused')], start)
    await at(0)
    expect(await list()).toMatchObject([{ sampleError: 'card 4711 refused' }])
    const [notification] = await notifications()
    expect(notification?.alerts[0]?.sampleError).toBe('card [redacted] refused')
    expect(JSON.stringify(notification)).not.toContain('4711')
  })

  it('ended alerts are removed after the retention', async () => {
    const dead = await given.queue()
    const { start, states, at } = await aTest((name) => [aRule(name, { type: 'letters', queues: [dead] })])
    const [letter = ''] = await actions.capture(dead, [failing('no route')], start)
    await at(0)
    await actions.discard([letter], start)
    await at(second)
    await at(30 * day)
    expect(await states()).toEqual(['resolved'])
    await at(30 * day + hour)
    expect(await states()).toEqual([])
    tests += 40
  })
})

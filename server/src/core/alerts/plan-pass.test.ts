import { describe, expect, it } from 'vitest'
import { minute, noon, second } from '../../../test/make.ts'
import type { Alert } from './alert.ts'
import { allQueues, ruleDefaults } from './built-in-rules.ts'
import type { AlertFacts, QueueFact } from './facts.ts'
import { limitObservations } from './limit-observations.ts'
import { observe } from './observe.ts'
import { notificationsPerPass, planPass } from './plan-pass.ts'
import type { AlertCondition, AlertRule } from './rule.ts'

const letters: AlertCondition = { ...allQueues, type: 'letters', countMin: 1 }
const aRule = (changes: Partial<AlertRule> = {}): AlertRule => ({
  ...ruleDefaults,
  name: 'Backlog',
  condition: letters,
  groupWaitUs: 0,
  ...changes,
})
const aQueue = (name: string, changes: Partial<QueueFact> = {}): QueueFact => ({
  name,
  namespace: 'shop',
  letterClass: 'standard',
  unresolvedCount: 1,
  ...changes,
})
const facts = (changes: Partial<AlertFacts> = {}): AlertFacts => ({
  now: noon,
  queues: [],
  oldest: new Map(),
  inflow: new Map(),
  groups: [],
  findings: [],
  areFindingsCut: false,
  unknownClusters: [],
  consumers: [],
  topics: [],
  countDrift: 0,
  ...changes,
})
let ids = 0
const createId = () => `a-${++ids}`
const many = (count: number, namespace = 'shop') =>
  Array.from({ length: count }, (_, index) => aQueue(`${namespace}-${index}`, { namespace }))

describe('a pass over the rules', () => {
  it('each subject of a rule has an alert, and the alerts are one notification for each namespace', () => {
    const queues = [aQueue('a'), aQueue('b'), aQueue('c', { namespace: 'bank' })]
    const plan = planPass([aRule()], facts({ queues }), [], createId)
    expect(plan.changed.map(({ subject, state }) => [subject, state])).toEqual([
      ['a', 'firing'],
      ['b', 'firing'],
      ['c', 'firing'],
    ])
    expect(plan.notifications.map(({ namespace, alerts }) => [namespace, alerts.length])).toEqual([
      ['shop', 2],
      ['bank', 1],
    ])
    expect(plan.changed.every(({ notifiedAt }) => notifiedAt === noon)).toBe(true)
  })

  it('a pass that finds nothing new changes nothing', () => {
    const queues = [aQueue('a')]
    const { changed } = planPass([aRule()], facts({ queues }), [], createId)
    const next = planPass([aRule()], facts({ queues, now: noon + second }), changed, createId)
    expect(next).toEqual({ changed: [], removed: [], notifications: [] })
  })

  it('a rule of a namespace is about the subjects of its namespace only', () => {
    const queues = [aQueue('a'), aQueue('b', { namespace: 'bank' })]
    const plan = planPass([aRule({ namespace: 'bank' })], facts({ queues }), [], createId)
    expect(plan.changed.map(({ subject }) => subject)).toEqual(['b'])
  })

  it('the alerts of a rule that was disabled end with a notification, those of a deleted rule without', () => {
    const queues = [aQueue('a')]
    const { changed } = planPass([aRule({ clearAfterUs: minute })], facts({ queues }), [], createId)
    const disabled = planPass(
      [aRule({ isEnabled: false, clearAfterUs: minute })],
      facts({ queues }),
      changed,
      createId,
    )
    expect(disabled.changed).toMatchObject([{ state: 'resolved', isTracked: false }])
    expect(disabled.notifications).toMatchObject([{ kind: 'resolved' }])
    const deleted = planPass([], facts({ queues }), changed, createId)
    expect(deleted.changed).toMatchObject([{ state: 'resolved', isTracked: false, endedAt: noon }])
    expect(deleted.notifications).toEqual([])
  })

  it('a pending alert of a deleted rule is removed', () => {
    const rule = aRule({ holdUs: minute })
    const { changed } = planPass([rule], facts({ queues: [aQueue('a')] }), [], createId)
    expect(planPass([], facts(), changed, createId)).toMatchObject({ changed: [], removed: changed })
  })

  it('notifications beyond the limit of a pass follow with the next pass', () => {
    const queues = Array.from({ length: notificationsPerPass + 5 }, (_, n) =>
      aQueue(`q-${n}`, { namespace: `n-${n}` }),
    )
    const first = planPass([aRule()], facts({ queues }), [], createId)
    expect(first.notifications).toHaveLength(notificationsPerPass)
    const second_ = planPass([aRule()], facts({ queues }), first.changed, createId)
    expect(second_.notifications).toHaveLength(5)
  })

  it('subjects beyond the limit of a namespace become one alert, and subjects with an alert keep it', () => {
    const rule = aRule()
    const limits = { subjectsMax: 2, subjectsTotalMax: 3 }
    const limit = (queues: readonly QueueFact[], tracked: readonly Alert[] = []) =>
      limitObservations(rule, observe(rule, facts({ queues }), []), tracked, limits).map(
        ({ namespace, subject, count }) => [namespace, subject, count],
      )
    expect(limit(many(4))).toEqual([
      ['shop', 'shop-0', 1],
      ['shop', 'shop-1', 1],
      ['shop', '*', 2],
    ])
    const { changed } = planPass([rule], facts({ queues: [aQueue('shop-3')] }), [], createId)
    expect(limit(many(4), changed).map(([, subject]) => subject)).toEqual(['shop-3', 'shop-0', '*'])
    expect(limit([...many(2), ...many(2, 'bank')])).toEqual([
      ['shop', 'shop-0', 1],
      ['shop', 'shop-1', 1],
      ['bank', 'bank-0', 1],
      ['_system', '*', 1],
    ])
  })
})

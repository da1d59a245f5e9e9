import { describe, expect, it } from 'vitest'
import { minute, noon, second } from '../../../test/make.ts'
import {
  type Alert,
  acknowledgeAlert,
  advanceAlert,
  muteAlert,
  type Observation,
  resolveAlert,
  startAlert,
} from './alert.ts'
import { allQueues, ruleDefaults } from './built-in-rules.ts'
import { dropMutedEnd, markNotified, planNotifications } from './plan-notifications.ts'
import type { AlertRule } from './rule.ts'

const aRule = (changes: Partial<AlertRule> = {}): AlertRule => ({
  ...ruleDefaults,
  name: 'Backlog',
  condition: { ...allQueues, type: 'letters', countMin: 1 },
  ...changes,
})
const seen = (changes: Partial<Observation> = {}): Observation => ({
  namespace: 'shop',
  subject: 'orders-dead',
  queue: 'orders-dead',
  groupId: null,
  groupTitle: null,
  count: 1,
  summary: 'dead queue orders-dead has 1 letter',
  since: null,
  ...changes,
})
const decision = { at: noon, by: 'ana', note: 'I look at it' }
/** Advances an alert that is still there. */
const step = (alert: Alert, rule: AlertRule, what: Observation | 'unknown' | null, now: number): Alert => {
  const next = advanceAlert(alert, rule, what, now)
  if (next === null) throw new Error('the alert was removed')
  return next
}
const plan = (rule: AlertRule, alerts: readonly Alert[], now: number) =>
  planNotifications(rule, 'shop', alerts, now).map(({ kind, alerts: found }) => [
    kind,
    ...found.map(({ id }) => id),
  ])

describe('an alert', () => {
  it('an alert is pending until its hold time is over, to the microsecond', () => {
    const rule = aRule({ holdUs: minute })
    const pending = startAlert('a', rule, seen(), noon)
    expect(pending).toMatchObject({ state: 'pending', startedAt: noon, firedAt: null })
    expect(advanceAlert(pending, rule, seen(), noon + minute - 1)).toBe(pending)
    expect(step(pending, rule, seen(), noon + minute)).toMatchObject({
      state: 'firing',
      firedAt: noon + minute,
    })
  })

  it('an alert whose condition was true long enough before fires at once', () => {
    const rule = aRule({ holdUs: minute })
    const since = noon - minute
    expect(startAlert('a', rule, seen({ since }), noon)).toMatchObject({ state: 'firing', startedAt: since })
    expect(startAlert('a', rule, seen({ since: since + 1 }), noon).state).toBe('pending')
  })

  it('a pending alert is removed when its condition is false, and stays while nobody can look', () => {
    const rule = aRule({ holdUs: minute })
    const pending = startAlert('a', rule, seen(), noon)
    expect(advanceAlert(pending, rule, null, noon + second)).toBeNull()
    expect(advanceAlert(pending, rule, 'unknown', noon + minute)).toBe(pending)
  })

  it('a firing alert ends when its condition was false for the clear time, to the microsecond', () => {
    const rule = aRule({ clearAfterUs: minute })
    const firing = startAlert('a', rule, seen(), noon)
    const clearing = step(firing, rule, null, noon + second)
    expect(clearing).toMatchObject({ state: 'firing', clearSince: noon + second })
    expect(advanceAlert(clearing, rule, null, noon + second + minute - 1)).toBe(clearing)
    expect(step(clearing, rule, seen(), noon + 2 * second)).toMatchObject({ clearSince: null })
    expect(step(clearing, rule, null, noon + second + minute)).toMatchObject({
      state: 'resolved',
      isTracked: false,
      endedAt: noon + second + minute,
    })
    expect(advanceAlert(firing, rule, 'unknown', noon + minute)).toBe(firing)
  })

  it('the figures of a firing alert are refreshed at most once a minute', () => {
    const rule = aRule()
    const firing = startAlert('a', rule, seen(), noon)
    expect(advanceAlert(firing, rule, seen({ count: 2 }), noon + minute - 1)).toBe(firing)
    expect(step(firing, rule, seen({ count: 2 }), noon + minute)).toMatchObject({ count: 2 })
    expect(advanceAlert(firing, rule, seen(), noon + minute)).toBe(firing)
  })

  it('an alert that a person resolved does not fire again before its condition was false', () => {
    const rule = aRule()
    const resolved = resolveAlert(startAlert('a', rule, seen(), noon), decision)
    expect(resolved).toMatchObject({ state: 'resolved', isTracked: true, resolved: decision, endedAt: noon })
    expect(advanceAlert(resolved, rule, seen(), noon + minute)).toBe(resolved)
    expect(step(resolved, rule, null, noon + minute)).toMatchObject({ isTracked: false, endedAt: noon })
  })

  it('an alert whose end was not notified yet fires again as the same alert', () => {
    const rule = aRule()
    const firing = { ...startAlert('a', rule, seen(), noon), notifiedAt: noon }
    const ended = step(firing, rule, null, noon + second)
    expect(ended).toMatchObject({ state: 'resolved', isTracked: true, isEndDue: true })
    expect(step(ended, rule, seen(), noon + 2 * second)).toMatchObject({
      state: 'firing',
      endedAt: null,
      isEndDue: false,
      firedAt: noon,
    })
  })
})

describe('notifications', () => {
  const fire = (id: string, at: number, rule = aRule()) => startAlert(id, rule, seen({ subject: id }), at)

  it('alerts that fire within the group wait are one notification', () => {
    const rule = aRule({ groupWaitUs: 30 * second })
    const [first, second_] = [fire('a', noon), fire('b', noon + 29 * second)]
    expect(plan(rule, [first, second_], noon + 30 * second - 1)).toEqual([])
    expect(plan(rule, [first, second_], noon + 30 * second)).toEqual([['firing', 'a', 'b']])
  })

  it('an alert is repeated after the repeat interval, and not if it was acknowledged', () => {
    const rule = aRule({ groupWaitUs: 0, repeatUs: minute })
    const notified = markNotified(fire('a', noon), 'firing', noon)
    expect(plan(rule, [notified], noon + minute - 1)).toEqual([])
    expect(plan(rule, [notified], noon + minute)).toEqual([['repeated', 'a']])
    expect(plan(rule, [acknowledgeAlert(notified, decision)], noon + minute)).toEqual([])
    expect(plan(aRule({ repeatUs: null }), [notified], noon + 1_000 * minute)).toEqual([])
  })

  it('an acknowledged alert that was not notified yet needs no notification', () => {
    const rule = aRule({ groupWaitUs: 0 })
    expect(plan(rule, [acknowledgeAlert(fire('a', noon), decision)], noon)).toEqual([])
  })

  it('a muted alert is notified when its mute ends, to the microsecond', () => {
    const rule = aRule({ groupWaitUs: 0 })
    const muted = muteAlert(fire('a', noon), decision, noon + minute)
    expect(plan(rule, [muted], noon + minute - 1)).toEqual([])
    expect(plan(rule, [muted], noon + minute)).toEqual([['firing', 'a']])
  })

  it('the end of an alert is notified if its start was, and not while it is muted', () => {
    const rule = aRule({ groupWaitUs: 0 })
    const silent = step(fire('a', noon), rule, null, noon + second)
    expect(plan(rule, [silent], noon + second)).toEqual([])
    const ended = step(markNotified(fire('a', noon), 'firing', noon), rule, null, noon + second)
    expect(plan(rule, [ended], noon + second)).toEqual([['resolved', 'a']])
    expect(markNotified(ended, 'resolved', noon + second)).toMatchObject({
      isTracked: false,
      isEndDue: false,
    })
    const muted = muteAlert(ended, decision, noon + minute)
    expect(plan(rule, [muted], noon + second)).toEqual([])
    expect(dropMutedEnd(muted, noon + second)).toMatchObject({ isTracked: false, isEndDue: false })
  })
})

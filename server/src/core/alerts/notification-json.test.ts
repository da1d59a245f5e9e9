import { describe, expect, it } from 'vitest'
import type { Notification } from './notification.ts'
import { decodeMessage, encodeMessage } from './notification-json.ts'

const alert = {
  id: 'a1',
  subject: 'orders-dead',
  severity: 'critical',
  summary: 'a sentence',
  queue: 'orders-dead',
  group: null,
  count: 3,
  sampleError: null,
  startedAt: 1,
  endedAt: null,
  url: null,
  dedupKey: 'k',
} as const
const notification: Notification = {
  id: 'n1',
  kind: 'firing',
  severity: 'critical',
  namespace: '_system',
  rule: 'r',
  at: 2,
  url: null,
  alerts: [alert],
  moreAlerts: 0,
}
const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))

describe('a queued notification', () => {
  it('a notification is the same after it was stored and read', () => {
    const message = { notification, channel: 'c', only: ['a@b.c'], queuedAt: 5 }
    expect(decodeMessage(encodeMessage(message))).toEqual(message)
  })

  it('long texts and many alerts are cut, and the missing alerts are counted', () => {
    const long = { ...alert, sampleError: 'x'.repeat(100_000), summary: '\ud800'.repeat(5_000) }
    const stored = encodeMessage({
      notification: { ...notification, alerts: Array(50).fill(long) },
      channel: 'c',
    })
    expect(stored.length).toBeLessThan(1_000_000)
    expect(decodeMessage(stored)?.notification).toMatchObject({ moreAlerts: 30 })
  })

  it.each([
    ['no JSON', new Uint8Array([0xff])],
    ['null', encode(null)],
    ['a list', encode([])],
    ['no channel', encode({ notification })],
    ['an unknown kind', encode({ channel: 'c', notification: { ...notification, kind: 'other' } })],
    ['no alerts', encode({ channel: 'c', notification: { ...notification, alerts: null } })],
    [
      'an alert without a start',
      encode({ channel: 'c', notification: { ...notification, alerts: [{ ...alert, startedAt: 'x' }] } }),
    ],
    ['recipients that are no texts', encode({ channel: 'c', notification, only: [1] })],
  ])('a payload with %s is no notification', (_, payload) => {
    expect(decodeMessage(payload)).toBeUndefined()
  })
})

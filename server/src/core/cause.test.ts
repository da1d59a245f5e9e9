import { describe, expect, it } from 'vitest'
import { aFailure } from '../../test/make.ts'
import { anyClass, causeOf, foldedCause, foldFor } from './cause.ts'
import type { Failure } from './item.ts'
import { reasonSlug } from './reason.ts'

const payments = { name: 'payments' }
const fingerprint = (changes: Partial<Failure>, origin = payments): string =>
  causeOf(aFailure(changes), origin).fingerprint

describe('the cause of a failure', () => {
  it('says what a group is shown as', () => {
    const failure = aFailure({ message: 'HTTP 503: order 4711 refused' })
    expect(causeOf(failure, payments)).toEqual({
      fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/),
      origin: 'payments',
      reason: 'http_503',
      slug: 'http_503',
      errorClass: 'com.example.PaymentRefused',
      title: 'HTTP <n>: order <n> refused',
    })
  })

  it('is the same whatever the numbers, ids, times and quoted texts are', () => {
    const messages = [
      'no user: 17 of "acme" not found at 2026-11-15T12:00:00.123Z, request 8f14e45f-ceea-467f-a83d-0123456789ab',
      'no user: 4 of "other" not found at 2027-01-01T00:30:59.001Z, request 00000000-0000-0000-0000-000000000000',
    ]
    expect(new Set(messages.map((message) => fingerprint({ message }))).size).toBe(1)
  })

  it.each([
    [['Order 123: not found', 'Order 4567: not found'], 'order'],
    [['connect ECONNREFUSED 10.0.0.1:5432', 'connect ECONNREFUSED 10.0.0.2:5432'], 'connect_econnrefused'],
    [['connect ECONNREFUSED ::1:5432', 'connect ECONNREFUSED fe80::a1:5432'], 'connect_econnrefused'],
    [['mail to a@b.com bounced', 'mail to jane.doe+1@mail.example.org bounced'], 'mail'],
    [['user a@b.com: rejected', 'user c.d@e.org: rejected'], 'user'],
    [['GET /orders/a1b2: gone', 'GET /orders/77: gone'], 'get_orders'],
    [['open /tmp/a1b2/x failed', 'open /tmp/c-3/x failed'], 'open'],
    [['2026-01-02T03:04:05Z bad', '2027-11-12 13:14:15.123+01:00 bad'], 'unknown'],
    [['12:30:45 late', '9:05 late'], 'unknown'],
    [['worker-3: lost', 'worker-12: lost'], 'worker'],
    [['user "ann": unknown', 'user "bob": unknown'], 'user'],
  ])('is the same for all of %j', (messages, slug) => {
    const causes = messages.map((message) => causeOf(aFailure({ message }), payments))
    expect(causes[1]).toEqual(causes[0])
    expect(causes[0]?.slug).toBe(slug)
  })

  it('is another one for another code at the head of the message', () => {
    const messages = ['HTTP 503: x', 'HTTP 404: x', 'E11000 x', 'E11001 x', 'ORA-01017: x', 'ORA-00001: x']
    expect(new Set(messages.map((message) => fingerprint({ message }))).size).toBe(messages.length)
  })

  it('has the slug of its message, whatever was looked at before', () => {
    const messages = ['HTTP 503: x', 'HTTP 504: x', 'Order 503: x', 'Order 7: x', '503 x', 'ORA-01017: x']
    for (const message of [...messages, ...messages]) {
      expect(causeOf(aFailure({ message }), payments).slug).toBe(reasonSlug(message))
    }
  })

  it('is another one for another class, reason, place, message or frame', () => {
    const differing = [
      fingerprint({}),
      fingerprint({ errorClass: 'com.example.Other' }),
      fingerprint({ reason: 'http_500' }),
      fingerprint({}, { name: 'orders' }),
      fingerprint({ message: 'card was lost' }),
      fingerprint({ stack: 'at refund (refund.ts:1:1)' }),
    ]
    expect(new Set(differing).size).toBe(differing.length)
  })

  it('does not change with line numbers, or with frames far down', () => {
    const frames = Array.from({ length: 30 }, (_, index) => `  at step${index} (steps.ts:${index}:1)`)
    const moved = frames.map((frame, index) => frame.replace(`:${index}:1`, `:${index + 7}:3`))
    const deeper = [...frames.slice(0, 5), '  at elsewhere (other.ts:1:1)']
    const expected = fingerprint({ stack: frames.join('\n') })
    expect(fingerprint({ stack: moved.join('\n') })).toBe(expected)
    expect(fingerprint({ stack: deeper.join('\n') })).toBe(expected)
  })

  it('is there also when nothing is known', () => {
    expect(causeOf(null, payments)).toMatchObject({ reason: 'unknown', slug: 'unknown', title: '' })
  })

  it('is kept as texts that any store takes, whatever the failure holds', () => {
    const odd = `${'x'.repeat(299)}\u{1f600}`
    const cause = causeOf(aFailure({ message: `${'y'.repeat(299)}😀`, errorClass: odd, reason: 'a\0b' }), {
      name: '\ud800',
    })
    for (const text of Object.values(cause)) {
      expect(text.isWellFormed()).toBe(true)
      expect(text).not.toContain('\0')
      expect(text.length).toBeLessThanOrEqual(512)
    }
  })

  it('beyond the causes that are kept apart is shared by all of one origin, reason and class', () => {
    const other = (changes: Partial<Failure>) => foldedCause(causeOf(aFailure(changes), payments), 1)
    const one = other({ message: 'one' })
    expect(other({ message: 'two' })).toEqual(one)
    expect(one).toMatchObject({
      origin: 'payments',
      reason: 'http_503',
      slug: 'other',
      errorClass: 'com.example.PaymentRefused',
      title: '(others)',
    })
    expect(other({ reason: 'other' }).fingerprint).not.toBe(one.fingerprint)
    expect(other({ errorClass: 'Other' }).fingerprint).not.toBe(one.fingerprint)
  })

  it('beyond these, too, is shared by all of one origin and reason', () => {
    const other = (changes: Partial<Failure>) => foldedCause(causeOf(aFailure(changes), payments), 2)
    const one = other({ errorClass: 'One' })
    expect(other({ errorClass: 'Two' })).toEqual(one)
    expect(one).toMatchObject({ errorClass: anyClass, slug: 'other', title: '(others)' })
    const ofClass = causeOf(aFailure({ errorClass: anyClass }), payments)
    expect(foldedCause(ofClass, 1).fingerprint).not.toBe(one.fingerprint)
    expect(foldedCause(foldedCause(ofClass, 1), 2)).toEqual(one)
    expect([4_999, 5_000, 9_999, 10_000].map(foldFor)).toEqual([0, 1, 1, 2])
  })

  it('costs a bounded time, whatever is in the message', () => {
    const parts = [
      '"',
      "'",
      '0',
      'a1',
      '0x',
      '1:',
      ' ',
      '"a',
      'a-',
      'a@',
      'a.',
      '@',
      '/',
      '/a',
      '/1',
      'a/',
      '::',
    ]
    const bad = [...parts, ':a', '1-', '0000-', '1111-11-11T', '1.', 'é', '\u2003', ' "\''].map((part) =>
      part.repeat(500_000),
    )
    const startedAt = performance.now()
    for (const message of bad) causeOf(aFailure({ message, stack: message }), payments)
    expect(performance.now() - startedAt).toBeLessThan(1_000)
  })
})

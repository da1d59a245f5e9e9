import { describe, expect, it } from 'vitest'
import { aFailure } from '../../../test/make.ts'
import type { Failure } from '../items/item.ts'
import { anyClass, type Cause, foldCause, toCause } from './cause.ts'
import { toReasonSlug } from './reason.ts'

const payments = { name: 'payments' }
const fingerprint = (changes: Partial<Failure>, origin = payments): string =>
  toCause(aFailure(changes), origin).fingerprint

describe('the cause of a failure', () => {
  it('a cause has the fields that its group shows', () => {
    const failure = aFailure({ message: 'HTTP 503: order 4711 refused' })
    expect(toCause(failure, payments)).toEqual({
      fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/),
      parent: '',
      causeKey: expect.stringMatching(/^[0-9a-f]{16}$/),
      bucket: expect.stringMatching(/^[0-9a-f]{16}$/),
      origin: 'payments',
      errorCode: 'http_503',
      slug: 'http_503',
      errorClass: 'com.example.PaymentRefused',
      title: 'HTTP 503: order <n> refused',
      template: 'HTTP 503: order <n> refused\nat: pay.pay',
      codes: ['503'],
      fold: 0,
    })
  })

  it('failures that differ in numbers, ids, times and quoted texts have the same cause', () => {
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
    [['2026-01-02T03:04:05Z bad', '2027-11-12 13:14:15.123+01:00 bad'], 'bad'],
    [['12:30:45 late', '9:05 late'], 'late'],
    [['worker-3: lost', 'worker-12: lost'], 'worker'],
    [['user "ann": unknown', 'user "bob": unknown'], 'user'],
  ])('all of these messages have the same cause: %j', (messages, slug) => {
    const causes = messages.map((message) => toCause(aFailure({ message }), payments))
    expect(causes[1]).toEqual(causes[0])
    expect(causes[0]?.slug).toBe(slug)
  })

  it('failures with different codes at the head of the message have different causes', () => {
    const messages = ['HTTP 503: x', 'HTTP 404: x', 'E11000 x', 'E11001 x', 'ORA-01017: x', 'ORA-00001: x']
    expect(new Set(messages.map((message) => fingerprint({ message }))).size).toBe(messages.length)
  })

  it('the slug of a cause does not depend on the messages read before', () => {
    const messages = ['HTTP 503: x', 'HTTP 504: x', 'Order 503: x', 'Order 7: x', '503 x', 'ORA-01017: x']
    for (const message of [...messages, ...messages]) {
      expect(toCause(aFailure({ message }), payments).slug).toBe(toReasonSlug(message))
    }
  })

  it('failures that differ in class, error code, origin, message or top frame have different causes', () => {
    const differing = [
      fingerprint({}),
      fingerprint({ errorClass: 'com.example.Other' }),
      fingerprint({ errorCode: 'http_500' }),
      fingerprint({}, { name: 'orders' }),
      fingerprint({ message: 'card was lost' }),
      fingerprint({ stack: 'at refund (refund.ts:1:1)' }),
    ]
    expect(new Set(differing).size).toBe(differing.length)
  })

  it('line numbers and frames far down in the stack do not change the cause', () => {
    const frames = Array.from({ length: 30 }, (_, index) => `  at step${index} (steps.ts:${index}:1)`)
    const moved = frames.map((frame, index) => frame.replace(`:${index}:1`, `:${index + 7}:3`))
    const deeper = [...frames.slice(0, 5), '  at elsewhere (other.ts:1:1)']
    const expected = fingerprint({ stack: frames.join('\n') })
    expect(fingerprint({ stack: moved.join('\n') })).toBe(expected)
    expect(fingerprint({ stack: deeper.join('\n') })).toBe(expected)
  })

  it('a letter without a failure has a cause', () => {
    expect(toCause(null, payments)).toMatchObject({ errorCode: 'unknown', slug: 'unknown', title: '' })
  })

  it('the texts of a cause can be stored, whatever the failure contains', () => {
    const odd = `${'x'.repeat(299)}\u{1f600}`
    const cause = toCause(aFailure({ message: `${'y'.repeat(299)}😀`, errorClass: odd, errorCode: 'a\0b' }), {
      name: '\ud800',
    })
    const { fold: _, codes, template, ...texts } = cause
    for (const text of [...Object.values(texts), ...codes, template]) {
      expect(text.isWellFormed()).toBe(true)
      expect(text).not.toContain('\0')
    }
    for (const text of Object.values(texts)) expect(text.length).toBeLessThanOrEqual(512)
    expect(template.length).toBeLessThanOrEqual(4_000)
  })

  it.each([
    '"',
    "'",
    '0',
    'a1',
    '0x',
    '1:',
    ' ',
    'a-',
    'a@',
    'a.',
    '@',
    '/a',
    '/1',
    'a/',
    '::',
    ':a',
    '1111-11-11T',
  ])('only the beginning of a long message and a long stack is read: %j', (part) => {
    const long = part.repeat(500_000)
    const cause = toCause(aFailure({ message: long, stack: long }), payments)
    const cut = { message: long.slice(0, 2_000), stack: long.slice(0, 32_000) }
    expect(toCause(aFailure(cut), payments)).toEqual(cause)
  })
})

describe('the cause of a letter in a queue with many groups', () => {
  const fold = (changes: Partial<Failure>, groupCount: number): Cause => {
    let cause = toCause(aFailure(changes), payments)
    for (;;) {
      const coarser = foldCause(cause, groupCount)
      if (coarser === undefined) return cause
      cause = coarser
    }
  }

  it('below 5,000 groups every cause gets a group', () => {
    expect(foldCause(toCause(aFailure(), payments), 4_999)).toBeUndefined()
  })

  it('from 5,000 groups on, new letters of one origin, error code and class share a cause', () => {
    const one = fold({ message: 'one' }, 5_000)
    expect(fold({ message: 'two' }, 9_999)).toEqual(one)
    expect(one).toMatchObject({
      origin: 'payments',
      errorCode: 'http_503',
      slug: 'other',
      errorClass: 'com.example.PaymentRefused',
      title: '(others)',
    })
    expect(fold({ errorCode: 'other' }, 5_000).fingerprint).not.toBe(one.fingerprint)
    expect(fold({ errorClass: 'Other' }, 5_000).fingerprint).not.toBe(one.fingerprint)
  })

  it('from 10,000 groups on, new letters of one origin and error code share a cause', () => {
    const one = fold({ errorClass: 'One' }, 10_000)
    expect(fold({ errorClass: 'Two' }, 10_000)).toEqual(one)
    expect(one).toMatchObject({ errorClass: anyClass, slug: 'other', title: '(others)' })
    expect(fold({ errorClass: anyClass }, 5_000).fingerprint).not.toBe(one.fingerprint)
    expect(fold({ errorClass: anyClass }, 10_000)).toEqual(one)
  })

  it('above 10,000 groups the group of the error class is looked for before it is left out', () => {
    const cause = toCause(aFailure(), payments)
    expect(foldCause(cause, 10_000)).toEqual(fold({}, 5_000))
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { aFailure } from '../../test/make.ts'
import { causeOf, normalize, otherCause } from './cause.ts'
import type { Failure } from './item.ts'

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

  it('beyond the causes that are kept apart is shared by all of one origin and reason', () => {
    const one = otherCause(causeOf(aFailure({ message: 'one' }), payments))
    const two = otherCause(causeOf(aFailure({ message: 'two', errorClass: 'Other' }), payments))
    expect(one).toEqual(two)
    expect(one).toMatchObject({ origin: 'payments', reason: 'http_503', title: '(others)' })
    expect(otherCause(causeOf(aFailure({ reason: 'other' }), payments)).fingerprint).not.toBe(one.fingerprint)
  })

  it('costs a bounded time, whatever is in the message', () => {
    const bad = ['"', "'", '0', 'a1', '0x', '1:', ' ', '"a', 'a-'].map((part) => part.repeat(500_000))
    const startedAt = performance.now()
    for (const message of bad) causeOf(aFailure({ message, stack: message }), payments)
    expect(performance.now() - startedAt).toBeLessThan(1_000)
  })
})

describe('a message without its variable parts', () => {
  it.each([
    ['took 1.5 s, not 30', 'took <n> s, not <n>'],
    ["no such column 'name'", 'no such column <text>'],
    ['at 0xDEADbeef', 'at <n>'],
    ['token a1b2c3d4e5f6a7b8 refused', 'token <n> refused'],
    ['10.0.0.7:5432 refused', '<n> refused'],
    ['  two\n  lines ', 'two lines'],
  ])('%j is %j', (message, title) => {
    expect(normalize(message)).toBe(title)
  })

  it('is the same whether or not there is more in it than numbers', () => {
    const pieces = [
      '0',
      '0x',
      '1f',
      '12.5',
      'ab',
      'Xyz',
      'abcdefabcdef',
      'a1b2c3d4e5f6',
      '-',
      '_',
      ' ',
      '.',
      ':',
      'é',
      '\n',
    ]
    const uuid = 'abcdefab-abcd-abcd-abcd-abcdefabcdef'
    const message = fc
      .array(fc.constantFrom(...pieces, uuid), { maxLength: 12 })
      .map((parts) => parts.join(''))
    // A quoted text at the end is replaced by itself, and no message with one is taken for a simple one.
    const quoted = (text: string) => normalize(`${text} 'x'`)
    fc.assert(
      fc.property(message, (text) => {
        expect(`${normalize(text)} <text>`.trim()).toBe(quoted(text))
      }),
    )
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bytes, noon, textOf } from '../../test/make.ts'
import { checkCommand } from '../storage/check-command.ts'
import { envelopeHeaderName, readEnvelope, undecodedLetter } from './envelope.ts'

const defaults = { origin: 'payments-dead', now: noon }
const whole = {
  original_topic: 'payments',
  original_partition: 3,
  original_offset: 42,
  original_key: 'order-7',
  original_value: '{"amount": 12}',
  error_details: {
    exception_class: 'com.example.PaymentRefused',
    message: 'card was refused',
    stack_trace: 'at pay (pay.ts:1:1)',
  },
  retry_count: 3,
  worker_instance: 'worker-7',
  first_failure_at: '2026-11-15T10:00:00Z',
  last_failure_at: '2026-11-15T11:00:00.123456Z',
  consumer_group: 'billing',
  headers: { trace: 'abc' },
}
const hour = 3_600_000_000

describe('an envelope', () => {
  it('becomes a letter with everything that it says', () => {
    const { letter, problems } = readEnvelope(whole, defaults)
    expect(problems).toEqual([])
    expect(letter).toEqual({
      sourceId: '/payments/3/42/billing',
      origin: {
        kind: 'kafka',
        name: 'payments',
        partition: 3,
        id: '42',
        group: 'billing',
        cluster: null,
        createdAt: noon - 2 * hour,
      },
      payload: bytes('{"amount": 12}'),
      key: bytes('order-7'),
      headers: [['trace', bytes('abc')]],
      failure: {
        reason: 'PaymentRefused',
        errorClass: 'com.example.PaymentRefused',
        message: 'card was refused',
        stack: 'at pay (pay.ts:1:1)',
        attempts: 3,
        firstFailedAt: noon - 2 * hour,
        lastFailedAt: noon - hour + 123_456,
        worker: 'worker-7',
      },
      history: [],
    })
  })

  it('of almost nothing is a letter, too', () => {
    const { letter, problems } = readEnvelope({}, defaults)
    expect(problems).toEqual([])
    expect(letter).toMatchObject({
      sourceId: null,
      origin: { kind: 'http', name: 'payments-dead' },
      key: null,
      headers: [],
      failure: { reason: 'unknown', message: '', attempts: 0, lastFailedAt: noon },
    })
    expect(letter.payload).toHaveLength(0)
  })

  it.each<[string, unknown, unknown, Uint8Array]>([
    ['a text', 'plain', undefined, bytes('plain')],
    ['base64 by its encoding', 'AP8=', 'base64', new Uint8Array([0, 255])],
    ['base64 in an object', { base64: 'AP8=' }, undefined, new Uint8Array([0, 255])],
    ['base64 for addresses', { base64: '_-8' }, undefined, new Uint8Array([255, 239])],
    ['JSON', { amount: 12, of: [1, null] }, undefined, bytes('{"amount":12,"of":[1,null]}')],
    ['a text as JSON', 'plain', 'json', bytes('"plain"')],
    ['a number', 12, undefined, bytes('12')],
    ['false', false, undefined, bytes('false')],
  ])('keeps a value that is %s', (_, original_value, original_value_encoding, expected) => {
    const { letter, problems } = readEnvelope({ original_value, original_value_encoding }, defaults)
    expect(problems).toEqual([])
    expect(letter.payload).toEqual(expected)
  })

  it('with a value that cannot be read is kept whole', () => {
    const broken = { ...whole, original_value: '!!', original_value_encoding: 'base64' }
    const { letter, problems } = readEnvelope(broken, defaults, bytes('as it came'))
    expect(problems).toEqual(['original_value is not base64'])
    expect(textOf(letter.payload)).toBe('as it came')
    expect(letter.failure).toMatchObject({
      reason: 'undecodable',
      message: 'card was refused (the envelope could not be read in full: original_value is not base64)',
    })
    // The same record again is the same letter, readable or not.
    expect(letter.sourceId).toBe('/payments/3/42/billing')
  })

  it('keeps the value and what was said beside it, when only something else cannot be read', () => {
    const { letter, problems } = readEnvelope(
      { ...whole, retry_count: -1, first_failure_at: 'soon' },
      defaults,
    )
    expect(problems).toHaveLength(2)
    expect(textOf(letter.payload)).toBe('{"amount": 12}')
    const [name, value] = letter.headers.at(-1) ?? []
    expect(name).toBe(envelopeHeaderName)
    expect(JSON.parse(textOf(value ?? null))).toMatchObject({ retry_count: -1, first_failure_at: 'soon' })
  })

  it('keeps headers in order, with repeats, absent values and bytes', () => {
    const headers = [
      ['a', '1'],
      { name: 'b', value: { base64: '/w==' } },
      { key: 'a', value: null },
      ['c', [1, 2]],
    ]
    expect(readEnvelope({ headers }, defaults).letter.headers).toEqual([
      ['a', bytes('1')],
      ['b', new Uint8Array([255])],
      ['a', null],
      ['c', bytes('1')],
      ['c', bytes('2')],
    ])
  })

  it.each([[null], [[]], ['text'], [12], [true], [undefined]])(
    'that is %j is captured with what was wrong',
    (odd) => {
      const { letter, problems } = readEnvelope(odd, defaults)
      expect(problems).toHaveLength(1)
      expect(letter.failure).toMatchObject({ reason: 'undecodable', errorClass: 'EnvelopeUnreadable' })
    },
  )

  it('of bytes that are not even JSON is captured as those bytes', () => {
    const raw = new Uint8Array([0xff, 0x00, 0xfe])
    expect(undecodedLetter(raw, 'no JSON', defaults).letter.payload).toEqual(raw)
  })

  it('reads times of many kinds, and refuses what is none', () => {
    const times = (first_failure_at: unknown) =>
      readEnvelope({ first_failure_at, last_failure_at: '2030-01-01T00:00:00Z' }, defaults).letter.failure
        .firstFailedAt
    expect(times('2026-11-15T12:00:00Z')).toBe(noon)
    expect(times('2026-11-15T13:00:00.000001+01:00')).toBe(noon + 1)
    expect(times('2026-11-15 12:00:00')).toBe(noon)
    expect(times(noon / 1_000)).toBe(noon)
    expect(times(String(noon / 1_000))).toBe(noon)
    for (const odd of ['2026-13-45T99:00:00Z', 'yesterday', {}, Number.NaN, 1e300, '', '9'.repeat(100)]) {
      expect(readEnvelope({ first_failure_at: odd }, defaults).problems, String(odd)).toHaveLength(1)
    }
  })

  it('never throws, and gives only what a store can keep', () => {
    const odd = fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary' }), fc.constant('\u0000\ud800'))
    const envelopes = fc.record(
      Object.fromEntries(
        [...Object.keys(whole), 'source_id', 'history', 'original_value_encoding'].map((name) => [name, odd]),
      ),
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.oneof(envelopes, fc.jsonValue()), (json) => {
        const { letter } = readEnvelope(json, defaults)
        checkCommand({ op: 'import', queue: 'q', partition: 0, items: [{ ...letter }], now: noon })
        const { reason, message, errorClass, stack, worker } = letter.failure
        for (const text of [reason, message, errorClass, stack, worker, letter.origin.name]) {
          expect(text.includes('\0') || !text.isWellFormed()).toBe(false)
        }
      }),
      { numRuns: 500 },
    )
  })
})

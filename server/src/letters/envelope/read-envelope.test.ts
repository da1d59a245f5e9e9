import { describe, expect, it } from 'vitest'
import fc from '../../../test/fast-check.ts'
import { bytes, noon, toText } from '../../../test/make.ts'
import { historyMax } from '../../core/items/item.ts'
import { checkCommand } from '../../storage/shared/items/check-command.ts'
import { createUndecodedLetter, envelopeHeaderName, readEnvelope } from './read-envelope.ts'

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
const day = 24 * hour

const read = (envelope: unknown) => readText(JSON.stringify(envelope) ?? 'null')
const readText = (text: string) => readEnvelope(JSON.parse(text), text, defaults)

describe('an envelope', () => {
  it('an envelope becomes a letter with all of its fields', () => {
    const { letter, problems } = read(whole)
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
        errorCode: 'PaymentRefused',
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

  it('an almost empty envelope becomes a letter', () => {
    const { letter, problems } = read({})
    expect(problems).toEqual([])
    expect(letter).toMatchObject({
      sourceId: null,
      origin: { kind: 'http', name: 'payments-dead' },
      key: null,
      headers: [],
      failure: { errorCode: 'unknown', message: '', attempts: 0, lastFailedAt: noon },
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
    const { letter, problems } = read({ original_value, original_value_encoding })
    expect(problems).toEqual([])
    expect(letter.payload).toEqual(expected)
  })

  it('an envelope with an unreadable value is kept whole', () => {
    const broken = { ...whole, original_value: '!!', original_value_encoding: 'base64' }
    const { letter, problems } = read(broken)
    expect(problems).toEqual(['original_value is not base64'])
    expect(toText(letter.payload)).toBe(JSON.stringify(broken))
    expect(letter.failure).toMatchObject({
      errorCode: 'undecodable',
      message: 'card was refused (the envelope could not be read in full: original_value is not base64)',
    })
    // The same record again is the same letter, keepIfValid or not.
    expect(letter.sourceId).toBe('/payments/3/42/billing')
  })

  it('an envelope with another unreadable field keeps the value and the original fields', () => {
    const { letter, problems } = read({ ...whole, retry_count: -1, first_failure_at: 'soon' })
    expect(problems).toHaveLength(2)
    expect(toText(letter.payload)).toBe('{"amount": 12}')
    const [name, value] = letter.headers.at(-1) ?? []
    expect(name).toBe(envelopeHeaderName)
    expect(JSON.parse(toText(value ?? null))).toMatchObject({ retry_count: -1, first_failure_at: 'soon' })
  })

  it('headers keep their order, repeated names, missing values and bytes', () => {
    const headers = [
      ['a', '1'],
      { name: 'b', value: { base64: '/w==' } },
      { key: 'a', value: null },
      ['c', [1, 2]],
    ]
    expect(read({ headers }).letter.headers).toEqual([
      ['a', bytes('1')],
      ['b', new Uint8Array([255])],
      ['a', null],
      ['c', bytes('1')],
      ['c', bytes('2')],
    ])
  })

  it.each([[null], [[]], ['text'], [12], [true], [undefined]])(
    'an envelope that is %j is captured with a description of the problem',
    (odd) => {
      const { letter, problems } = read(odd)
      expect(problems).toHaveLength(1)
      expect(letter.failure).toMatchObject({ errorCode: 'undecodable', errorClass: 'EnvelopeUnreadable' })
    },
  )

  it('bytes that are not JSON are captured unchanged', () => {
    const raw = new Uint8Array([0xff, 0x00, 0xfe])
    expect(createUndecodedLetter(raw, 'no JSON', defaults).letter.payload).toEqual(raw)
  })

  it('times are read in several formats, and invalid times are reported', () => {
    const times = (first_failure_at: unknown) =>
      read({ first_failure_at, last_failure_at: '2030-01-01T00:00:00Z' }).letter.failure.firstFailedAt
    expect(times('2026-11-15T12:00:00Z')).toBe(noon)
    expect(times('2026-11-15T13:00:00.000001+01:00')).toBe(noon + 1)
    expect(times('2026-11-15 12:00:00')).toBe(noon)
    expect(times(noon / 1_000)).toBe(noon)
    expect(times(String(noon / 1_000))).toBe(noon)
    for (const odd of [
      '2026-13-45T99:00:00Z',
      '2026-02-30T00:00:00Z',
      '2026-01-01T24:00:00Z',
      '2026-01-01',
      'yesterday',
      {},
      1e300,
      '',
      '9'.repeat(100),
    ]) {
      expect(read({ first_failure_at: odd }).problems, String(odd)).toHaveLength(1)
    }
  })

  it('JSON values are kept exactly as written: digits, repeated names, spaces and escapes', () => {
    const value = '{"id": 12345678901234567890, "a":1,"a":2.0,"half":"\\ud800"}'
    const { letter, problems } = readText(
      `{"original_value":${value},"original_key":9007199254740993,"headers":{"n":1.10,"n":9007199254740993}}`,
    )
    expect(problems).toEqual([])
    expect(toText(letter.payload)).toBe(value)
    expect(toText(letter.key)).toBe('9007199254740993')
    expect(letter.headers).toEqual([
      ['n', bytes('1.10')],
      ['n', bytes('9007199254740993')],
    ])
  })

  describe('different envelopes become different letters', () => {
    const sourceIds = (...envelopes: string[]) => {
      const all = envelopes.map(readText)
      const ids = all.map(({ letter }) => letter.sourceId)
      expect(new Set(ids).size).toBe(envelopes.length)
      for (const id of ids) expect(id?.length).toBeLessThanOrEqual(1_000)
      return all
    }
    const sourced = (source_id: string) => JSON.stringify({ source_id, original_value: 'x' })
    const long = 's'.repeat(1_000)

    it('source ids that differ only after the length limit stay different', () => {
      const [first] = sourceIds(sourced(`${long}a`), sourced(`${long}b`), sourced(long))
      expect(first?.letter.sourceId).toMatch(/^s{900,}~sha256:[0-9a-f]{64}$/)
      expect(first?.problems).toEqual([
        'source_id has 1001 characters, more than 1000: kept as its beginning and a digest',
      ])
      expect(readText(sourced(long)).problems).toEqual([])
      expect(readText(sourced(`${long}a`)).letter.sourceId).toBe(first?.letter.sourceId)
      const [name, kept] = first?.letter.headers.at(-1) ?? []
      expect([name, JSON.parse(toText(kept ?? null))]).toEqual([
        envelopeHeaderName,
        { source_id: `${long}a` },
      ])
      expect(toText(first?.letter.payload ?? null)).toBe('x')
      expect(first?.letter.failure.errorCode).toBe('unknown')
    })

    it('long texts are truncated and reported, and short ones are kept whole', () => {
      const sent = {
        original_value: 'x',
        error_code: 'r'.repeat(101),
        worker_instance: 'w'.repeat(600),
        error_details: {
          exception_class: `${'c'.repeat(499)}😀`,
          message: 'm'.repeat(16_001),
          stack_trace: 's'.repeat(32_001),
        },
      }
      const { letter, problems } = readText(JSON.stringify(sent))
      expect(problems).toEqual([
        'exception_class has 501 characters: the first 500 are kept',
        'error_code has 101 characters: the first 100 are kept',
        'message has 16001 characters: the first 16000 are kept',
        'stack_trace has 32001 characters: the first 32000 are kept',
        'worker_instance has 600 characters: the first 512 are kept',
      ])
      expect(letter.failure.errorClass).toBe('c'.repeat(499))
      expect(letter.failure.errorCode).toBe('r'.repeat(100))
      const [name, kept] = letter.headers.at(-1) ?? []
      const { original_value, ...rest } = sent
      expect([name, JSON.parse(toText(kept ?? null))]).toEqual([envelopeHeaderName, rest])
      const long = readText(JSON.stringify({ error_details: { stack_trace: 's'.repeat(32_001) } }))
      expect([long.problems.length, long.letter.headers]).toEqual([1, []])
    })

    it('source ids that differ only in characters that no store keeps stay different', () => {
      const all = sourceIds(
        '{"source_id":"a\\u0000"}',
        '{"source_id":"a\\ud800"}',
        '{"source_id":"a\\ud801"}',
        '{"source_id":"a\\ufffd"}',
      )
      expect(all.map(({ problems }) => problems.length)).toEqual([1, 1, 1, 0])
    })

    it('offsets that differ only in digits that a parsed number loses stay different', () => {
      const record = (offset: string) =>
        `{"original_topic":"t","original_partition":0,"original_offset":${offset}}`
      const all = sourceIds(record('9007199254740993'), record('9007199254740992'), record('1e30'))
      expect(all.map(({ letter }) => letter.origin.id)).toEqual([
        '9007199254740993',
        '9007199254740992',
        '1e30',
      ])
      expect(all.flatMap(({ problems }) => problems)).toEqual([])
      sourceIds('{"source_id":9007199254740993}', '{"source_id":9007199254740992}')
    })

    it('offsets of topics that exceed the length limit stay different', () => {
      const record = (original_topic: string, original_offset: number) =>
        JSON.stringify({ original_topic, original_partition: 0, original_offset, consumer_group: 'g' })
      const all = sourceIds(
        record('ü'.repeat(400), 1),
        record('ü'.repeat(400), 2),
        record(`${'t'.repeat(600)}a`, 1),
        record(`${'t'.repeat(600)}b`, 1),
      )
      for (const { problems } of all) expect(problems).toHaveLength(1)
    })
  })

  it('unpaired surrogates in texts are replaced and do not change the error code', () => {
    const { letter, problems } = readText(
      '{"original_value":"v","original_key":"k\\ud800","headers":{"h\\ud800":"\\udc00"},"error_details":{"exception_class":"E","message":"m\\ud800"},"worker_instance":"w\\u0000"}',
    )
    expect(problems).toEqual([
      'original_key has an unpaired surrogate, kept as U+FFFD',
      'the name of header h\ufffd has a NUL character or an unpaired surrogate, kept as U+FFFD',
      'header h\ufffd has an unpaired surrogate, kept as U+FFFD',
      'message has a NUL character or an unpaired surrogate, kept as U+FFFD',
      'worker_instance has a NUL character or an unpaired surrogate, kept as U+FFFD',
    ])
    expect(letter.failure).toMatchObject({ errorCode: 'E', message: 'm\ufffd', worker: 'w\ufffd' })
    expect([toText(letter.payload), toText(letter.key)]).toEqual(['v', 'k\ufffd'])
    expect(toText(letter.headers.at(-1)?.[1] ?? null)).toContain('"original_key":"k\\ud800"')
  })

  it('an envelope whose value has an unpaired surrogate is kept whole', () => {
    const text = '{"original_value":"v\\ud800","source_id":"s"}'
    const { letter, problems } = readText(text)
    expect(problems).toEqual(['original_value has an unpaired surrogate, which has no UTF-8 encoding'])
    expect(toText(letter.payload)).toBe(text)
    expect(letter.sourceId).toBe('s')
  })

  it('the time of death is taken from the envelope unless it is invalid or in the future', () => {
    const died = (dead_lettered_at: unknown) => {
      const { letter, problems } = read({ dead_lettered_at })
      return [letter.deadLetteredAt, problems.length]
    }
    expect(died('2026-11-15T11:00:00Z')).toEqual([noon - hour, 0])
    expect(died('2026-11-16T12:00:00Z')).toEqual([noon + day, 0])
    expect(died('2026-11-16T12:00:00.000001Z')).toEqual([noon, 1])
    expect(died('2100-01-01T00:00:00Z')).toEqual([noon, 1])
    expect(died('2026-02-30T00:00:00Z')).toEqual([undefined, 1])
  })

  describe('with a history', () => {
    const entry = (message: string, at?: string) => ({
      message,
      ...(at !== undefined && { failed_at: `2026-11-${at}T00:00:00Z` }),
    })
    const messages = (...history: unknown[]) => read({ history }).letter.history.map(({ message }) => message)

    it('the history has the newest failure first, in whichever order it is sent', () => {
      expect(messages(entry('first', '01'), entry('second', '02'), entry('third', '03'))).toEqual([
        'third',
        'second',
        'first',
      ])
      const last = { error_details: { message: 'last' }, last_failure_at: '2026-11-04T00:00:00Z' }
      expect(messages(entry('third', '03'), entry('second', '02'), last)).toEqual(['last', 'third', 'second'])
    })

    it('failures with equal or missing times keep their order', () => {
      expect(messages(entry('b', '01'), entry('a', '01'), entry('c', '02'))).toEqual(['c', 'b', 'a'])
      expect(messages(entry('b'), entry('a'), entry('c'))).toEqual(['b', 'a', 'c'])
      expect(messages(entry('x'), entry('a', '03'), entry('y'), entry('b', '02'))).toEqual([
        'x',
        'a',
        'y',
        'b',
      ])
      expect(messages(entry('a', '01'), entry('x'), entry('b', '02'))).toEqual(['b', 'a', 'x'])
    })

    it('a history that is too long keeps the newest failures, reports it and keeps the original', () => {
      const at = (index: number) => new Date(Date.UTC(2026, 10, 1) + index * 1_000).toISOString()
      const history = Array.from({ length: 300 }, (_, index) => ({
        message: `${index}`,
        failed_at: at(index),
      }))
      const { letter, problems } = read({ ...whole, history })
      expect(problems).toEqual([`history has 300 entries: the newest ${historyMax} are kept`])
      expect(letter.history.map(({ message }) => message)).toEqual(
        Array.from({ length: historyMax }, (_, index) => `${299 - index}`),
      )
      expect(letter.failure.errorCode).toBe('PaymentRefused')
      const [name, kept] = letter.headers.at(-1) ?? []
      expect(name).toBe(envelopeHeaderName)
      expect(JSON.parse(toText(kept ?? null)).history).toEqual(history)
    })
  })

  it('reading never throws and returns only values that a store can keep', () => {
    const odd = fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary' }), fc.constant('\u0000\ud800'))
    const envelopes = fc.record(
      Object.fromEntries(
        [...Object.keys(whole), 'source_id', 'history', 'original_value_encoding'].map((name) => [name, odd]),
      ),
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.oneof(envelopes, fc.jsonValue()), (json) => {
        const { letter } = read(json)
        checkCommand({ op: 'import', queue: 'q', partition: 0, items: [{ ...letter }], now: noon })
        const { errorCode, message, errorClass, stack, worker } = letter.failure
        for (const text of [errorCode, message, errorClass, stack, worker, letter.origin.name]) {
          expect(text.includes('\0') || !text.isWellFormed()).toBe(false)
        }
      }),
      { numRuns: 500 },
    )
  })
})

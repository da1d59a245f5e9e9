import { describe, expect, it } from 'vitest'
import { bytes, noon } from '../../../test/make.ts'
import { envelopeHeaderName, readEnvelope } from './read-envelope.ts'

const defaults = { origin: 'payments-dead', now: noon }
type Headers = Readonly<Record<string, unknown>> | readonly (readonly [string, unknown])[]

const read = (headers: Headers, rest: object = {}) => {
  const text = JSON.stringify({ original_value: 'paid', headers, ...rest })
  return readEnvelope(JSON.parse(text), text, defaults)
}
const int4 = (number: number) => {
  const buffer = Buffer.alloc(4)
  buffer.writeInt32BE(number)
  return { base64: buffer.toString('base64') }
}
const int8 = (number: bigint) => {
  const buffer = Buffer.alloc(8)
  buffer.writeBigInt64BE(number)
  return { base64: buffer.toString('base64') }
}

const spring = {
  'kafka_dlt-original-topic': 'payments',
  'kafka_dlt-original-partition': int4(2),
  'kafka_dlt-original-offset': int8(9_007_199_254_740_993n),
  'kafka_dlt-original-timestamp': int8(BigInt(noon / 1_000) - 60_000n),
  'kafka_dlt-original-consumer-group': 'billing',
  'kafka_dlt-exception-fqcn': 'org.springframework.kafka.listener.ListenerExecutionFailedException',
  'kafka_dlt-exception-cause-fqcn': 'com.example.CardRefused',
  'kafka_dlt-exception-message': 'card was refused',
  'kafka_dlt-exception-stacktrace': 'at pay (Pay.java:12)',
}

describe('headers of a dead record', () => {
  it('Spring headers give the origin, with numbers as bytes, and the exception that the listener threw', () => {
    const { letter, problems } = read(spring)
    expect(problems).toEqual([])
    expect(letter).toMatchObject({
      sourceId: '/payments/2/9007199254740993/billing',
      origin: {
        kind: 'kafka',
        name: 'payments',
        partition: 2,
        id: '9007199254740993',
        group: 'billing',
        createdAt: noon - 60_000_000,
      },
      failure: {
        errorCode: 'CardRefused',
        errorClass: 'com.example.CardRefused',
        message: 'card was refused',
        stack: 'at pay (Pay.java:12)',
      },
    })
    expect(letter.headers.map(([name]) => name)).toEqual(Object.keys(spring))
    expect(letter.payload).toEqual(bytes('paid'))
  })

  it.each<[string, Headers, string, object]>([
    [
      'Kafka Connect',
      {
        '__connect.errors.topic': 'payments',
        '__connect.errors.partition': '1',
        '__connect.errors.offset': '77',
        '__connect.errors.exception.class.name': 'org.apache.kafka.connect.errors.DataException',
        '__connect.errors.exception.message': 'no schema',
        '__connect.errors.exception.stacktrace': 'at convert',
      },
      '/payments/1/77/',
      { errorCode: 'DataException', message: 'no schema', stack: 'at convert' },
    ],
    [
      'share groups',
      {
        '__dlq.errors.topic': 'payments',
        '__dlq.errors.partition': '1',
        '__dlq.errors.offset': '77',
        '__dlq.errors.group': 'billing',
        '__dlq.errors.delivery.count': '5',
        '__dlq.errors.message': 'rejected',
      },
      '/payments/1/77/billing',
      { errorCode: 'unknown', message: 'rejected', attempts: 5 },
    ],
    [
      'Kafka Streams',
      {
        '__streams.errors.topic': 'payments',
        '__streams.errors.partition': '1',
        '__streams.errors.offset': '77',
        '__streams.errors.exception': 'java.lang.IllegalStateException',
        '__streams.errors.message': 'odd',
        '__streams.errors.stacktrace': 'at map',
      },
      '/payments/1/77/',
      { errorClass: 'java.lang.IllegalStateException', message: 'odd', stack: 'at map' },
    ],
    [
      'x-original-…',
      {
        'X-Original-Topic': 'payments',
        'x-original-partition': int4(1),
        'x-original-offset': '77',
        'x-failure-count': '3',
        'x-last-error': 'HTTP 503',
        'x-failed-at': '2026-11-15T11:00:00Z',
      },
      '/payments/1/77/',
      { message: 'HTTP 503', attempts: 3, lastFailedAt: noon - 3_600_000_000 },
    ],
  ])('the origin and failure are read from headers of %s', (_, headers, sourceId, failure) => {
    const { letter, problems } = read(headers)
    expect(problems).toEqual([])
    expect(letter).toMatchObject({ sourceId, origin: { kind: 'kafka', name: 'payments' }, failure })
  })

  it('plain headers give the topic and the error', () => {
    const { letter } = read({ original_topic: 'payments', error: 'refused' })
    expect(letter).toMatchObject({
      sourceId: null,
      origin: { kind: 'http', name: 'payments' },
      failure: { message: 'refused' },
    })
  })

  it('fields of the envelope take precedence over headers', () => {
    const own = {
      original_topic: 'orders',
      original_partition: 0,
      original_offset: 5,
      error_details: { message: 'ours' },
      retry_count: 2,
    }
    const { letter } = read(spring, own)
    expect(letter).toMatchObject({
      sourceId: '/orders/0/5/',
      origin: { name: 'orders', group: null },
      failure: { message: 'ours', errorClass: '', stack: '', attempts: 2 },
    })
  })

  it('headers of two tools are never mixed', () => {
    const { letter } = read({
      'kafka_dlt-original-topic': 'payments',
      'x-original-topic': 'orders',
      'x-original-partition': '4',
      'x-original-offset': '9',
    })
    expect(letter).toMatchObject({ sourceId: null, origin: { name: 'payments', partition: null, id: '' } })
  })

  it('a record that died twice gets its origin from the first headers and its failure from the last', () => {
    const { letter } = read([
      ['kafka_dlt-original-topic', 'payments'],
      ['kafka_dlt-original-partition', int4(1)],
      ['kafka_dlt-original-offset', int8(7n)],
      ['kafka_dlt-exception-message', 'first'],
      ['kafka_dlt-original-topic', 'payments-dlt'],
      ['kafka_dlt-original-partition', int4(0)],
      ['kafka_dlt-original-offset', int8(99n)],
      ['kafka_dlt-exception-message', 'second'],
    ])
    expect(letter).toMatchObject({
      sourceId: '/payments-dlt/0/99/',
      origin: { name: 'payments', partition: 1, id: '7' },
      failure: { message: 'second' },
    })
  })

  it('invalid headers do not make the record unreadable', () => {
    const { letter, problems } = read({
      'x-original-topic': 'payments',
      'x-original-partition': '99999999999',
      'x-original-timestamp': '0',
      'x-exception-fqcn': 'com.example.CardRefused',
      'x-failure-count': '99999999999',
      'x-failed-at': 'Tue, 03 Jun 2025',
    })
    expect(problems).toHaveLength(4)
    expect(problems).toContain('header x-failed-at is not a valid time and is ignored')
    expect(letter.failure).toMatchObject({ errorCode: 'CardRefused', attempts: 0, lastFailedAt: noon })
  })

  it('headers that cannot be read are reported and kept', () => {
    const { letter, problems } = read({
      'x-original-topic': 'payments',
      'x-original-offset': 'many',
      'x-last-error': 'odd',
    })
    expect(problems).toEqual(['header x-original-offset is not a number and is ignored'])
    expect(letter).toMatchObject({
      sourceId: null,
      origin: { name: 'payments' },
      failure: { message: 'odd' },
    })
    expect(letter.headers.map(([name]) => name)).toContain('x-original-offset')
    expect(letter.headers.at(-1)?.[0]).toBe(envelopeHeaderName)
  })
})

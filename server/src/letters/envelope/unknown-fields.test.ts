import { describe, expect, it } from 'vitest'
import { noon, toText } from '../../../test/make.ts'
import { envelopeHeaderName, readEnvelope } from './read-envelope.ts'

const read = (envelope: object) =>
  readEnvelope(envelope, JSON.stringify(envelope), { origin: 'payments-dead', now: noon })

describe('a field that an envelope does not have', () => {
  const sent = { original_value: 'v', error_message: 'disk full', orignal_topic: 'orders' }

  it('an unknown field is reported with the most similar known name', () => {
    expect(read(sent).problems).toEqual([
      'error_message is an unknown field',
      'orignal_topic is an unknown field; did you mean original_topic?',
    ])
    expect(read({ exception_class: 'E' }).problems).toEqual([
      'exception_class is an unknown field; did you mean error_details.exception_class?',
    ])
  })

  it('an unknown field is kept with the original envelope and does not change the error code', () => {
    const { letter } = read({ ...sent, error_details: { exception_class: 'IOError', message: 'm' } })
    expect(letter.failure).toMatchObject({ errorCode: 'IOError', message: 'm' })
    expect(toText(letter.payload)).toBe('v')
    const [name, kept] = letter.headers.at(-1) ?? []
    expect(name).toBe(envelopeHeaderName)
    expect(JSON.parse(toText(kept ?? null))).toMatchObject({ error_message: 'disk full' })
  })

  it('unknown fields in the error and the history are reported once each', () => {
    const error_details = { message: 'm', cause: 'root', clas: 'X' }
    const history = [
      { mesage: 'm', failed_at: '2026-01-01T00:00:00Z' },
      { mesage: 'm', error_details },
      { message: 'is not read beside error_details', error_details },
    ]
    expect(read({ error_details, history }).problems).toEqual([
      'error_details.cause is an unknown field',
      'error_details.clas is an unknown field',
      'history.mesage is an unknown field; did you mean history.message?',
      'history.error_details.cause is an unknown field',
      'history.error_details.clas is an unknown field',
      'history.message is an unknown field; did you mean history.error_details.message?',
    ])
  })

  it('ten unknown fields are reported by the beginning of their names, then the number of others', () => {
    const many = (count: number) =>
      read(
        Object.fromEntries(
          Array.from({ length: count }, (_, index) => [`x${index}-${'y'.repeat(1_000)}`, 1]),
        ),
      )
    const { problems } = many(12)
    expect(problems).toHaveLength(11)
    expect(problems[0]).toBe(`x0-${'y'.repeat(47)} is an unknown field`)
    expect(problems.at(-1)).toBe('2 more fields are unknown')
    expect(many(11).problems.at(-1)).toBe('1 more field is unknown')
    expect(many(10).problems).toHaveLength(10)
  })

  it('an unknown field that is null is ignored', () => {
    expect(read({ foo: null, error_details: { cause: null } }).problems).toEqual([])
  })

  it('fields that are read are not reported as unknown', () => {
    const time = '2026-01-01T00:00:00Z'
    const error_details = { exception_class: 'E', message: 'm', stack_trace: 's', code: 'c' }
    const failure = { retry_count: 1, worker_instance: 'w', first_failure_at: time, last_failure_at: time }
    const { letter, problems } = read({
      ...failure,
      source_id: 's',
      original_topic: 't',
      original_queue: 'q',
      original_partition: 1,
      original_offset: 2,
      original_id: '3',
      original_key: 'aw==',
      original_key_encoding: 'base64',
      original_value: 'dg==',
      original_value_encoding: 'base64',
      original_timestamp: time,
      dead_lettered_at: time,
      cluster: 'c',
      consumer_group: 'g',
      headers: { any: 'thing' },
      error_code: 'r',
      error_details,
      history: [
        { ...failure, failed_at: time, error_code: 'r', error_details },
        { ...failure, failed_at: time, ...error_details },
        { error_details: null, message: 'beside nothing' },
      ],
    })
    expect(problems).toEqual([])
    expect(letter.history.map(({ message }) => message)).toEqual(['m', 'm', 'beside nothing'])
  })
})

import { describe, expect, it } from 'vitest'
import { Dead, RetryLater, toRetryRequest } from '../worker/outcome.ts'
import { toFailureHeader, toItemFailure } from './item-failure.ts'

describe('toItemFailure and toFailureHeader', () => {
  it.each([
    [new TypeError('x'), { errorClass: 'TypeError', message: 'x' }],
    ['text', { errorClass: 'string', message: 'text' }],
    [undefined, { errorClass: 'undefined', message: 'undefined' }],
    [null, { errorClass: 'object', message: 'null' }],
    [{ a: 1 }, { errorClass: 'object', message: '{"a":1}' }],
    [{ toJSON: () => undefined }, { errorClass: 'object', message: '' }],
  ])('a failure has class and message of any thrown value: %s', (thrown, failure) => {
    expect(toItemFailure(thrown)).toMatchObject(failure)
  })

  it('a circular object becomes a failure with an empty message', () => {
    const circular: { self?: unknown } = {}
    circular.self = circular
    expect(toItemFailure(circular)).toEqual({ errorClass: 'object', message: '' })
  })

  it('the failure header is printable ASCII and decodes to the same texts, without NUL', () => {
    const failure = { errorClass: 'Žluť', message: 'a\n"b" 🐎\0', stack: 'at x\r\nat y', errorCode: '' }
    const header = toFailureHeader(failure)
    expect(header).toMatch(/^[\x20-\x7e]*$/)
    expect(JSON.parse(header)).toEqual({
      error_class: 'Žluť',
      message: 'a\n"b" 🐎',
      stack: 'at x\r\nat y',
    })
  })

  it.each(['x', '🐎', '\n'])('the failure header has at most 6,000 bytes if all texts repeat %j', (char) => {
    const endless = char.repeat(100_000)
    const header = toFailureHeader({
      errorClass: endless,
      message: endless,
      stack: endless,
      errorCode: endless,
    })
    expect(header.length).toBeLessThanOrEqual(6_000)
    expect(JSON.parse(header).message.length).toBeGreaterThan(100)
  })
})

describe('toRetryRequest', () => {
  const nowMs = Date.parse('2026-01-01T00:00:00Z')

  it('the thrown value decides when the item is retried, or that it is dead', () => {
    expect(toRetryRequest(new Error('x'), nowMs)).toEqual({ isDead: false, failure: expect.anything() })
    expect(toRetryRequest(new Error('x'), nowMs, () => 1_000)).toMatchObject({
      retryAt: new Date(nowMs + 1_000),
    })
    expect(toRetryRequest(new RetryLater('x', { afterMs: 5 }), nowMs)).toMatchObject({
      retryAt: new Date(nowMs + 5),
    })
    const at = '2026-01-01T00:00:00.000001Z'
    expect(toRetryRequest(new RetryLater('x', { at }), nowMs)).toMatchObject({ retryAt: at, isDead: false })
    expect(toRetryRequest(new Dead('x'), nowMs)).toMatchObject({ isDead: true })
  })

  it('an invalid retry time is ignored, so that the queue decides', () => {
    for (const thrown of [
      new RetryLater('x', { afterMs: Number.NaN }),
      new RetryLater('x', { at: 'tomorrow' }),
      new RetryLater('x', { at: new Date(Number.NaN) }),
    ]) {
      expect(toRetryRequest(thrown, nowMs)).not.toHaveProperty('retryAt')
    }
  })

  it('the failure has class and message of the cause of a Dead error', () => {
    const dead = new Dead('never', { errorCode: 'bad', cause: new TypeError('wrong') })
    expect(toRetryRequest(dead, nowMs).failure).toMatchObject({
      errorClass: 'TypeError',
      message: 'never: wrong',
      errorCode: 'bad',
    })
    expect(toRetryRequest(new Dead('never'), nowMs).failure).toMatchObject({
      errorClass: 'Dead',
      message: 'never',
    })
  })
})

import { describe, expect, it } from 'vitest'
import { failureOf, toFailureHeader } from './item-failure.ts'
import { Dead, givenBack, RetryLater } from './worker/outcome.ts'

describe('the failure of an item', () => {
  it.each([
    [new TypeError('x'), { errorClass: 'TypeError', message: 'x' }],
    ['text', { errorClass: 'string', message: 'text' }],
    [undefined, { errorClass: 'undefined', message: 'undefined' }],
    [null, { errorClass: 'object', message: 'null' }],
    [{ a: 1 }, { errorClass: 'object', message: '{"a":1}' }],
    [{ toJSON: () => undefined }, { errorClass: 'object', message: '' }],
  ])('tells of whatever was thrown: %s', (thrown, failure) => {
    expect(failureOf(thrown)).toMatchObject(failure)
  })

  it('survives what cannot be told', () => {
    const circular: { self?: unknown } = {}
    circular.self = circular
    expect(failureOf(circular)).toEqual({ errorClass: 'object', message: '' })
  })

  it('goes in a header that every HTTP stack lets pass, and says the same there', () => {
    const failure = { errorClass: 'Žluť', message: 'a\n"b" 🐎\0', stack: 'at x\r\nat y', reason: '' }
    const header = toFailureHeader(failure)
    expect(header).toMatch(/^[\x20-\x7e]*$/)
    expect(JSON.parse(header)).toEqual({
      error_class: 'Žluť',
      error_message: 'a\n"b" 🐎',
      stack: 'at x\r\nat y',
    })
  })

  it.each(['x', '🐎', '\n'])('is bounded, also when it is nothing but %j', (char) => {
    const endless = char.repeat(100_000)
    const header = toFailureHeader({ errorClass: endless, message: endless, stack: endless, reason: endless })
    expect(header.length).toBeLessThanOrEqual(6_000)
    expect(JSON.parse(header).error_message.length).toBeGreaterThan(100)
  })
})

describe('what a handler throws', () => {
  const nowMs = Date.parse('2026-01-01T00:00:00Z')

  it('decides when the item comes back', () => {
    expect(givenBack(new Error('x'), nowMs)).toEqual({ isDead: false, failure: expect.anything() })
    expect(givenBack(new Error('x'), nowMs, () => 1_000)).toMatchObject({ retryAt: new Date(nowMs + 1_000) })
    expect(givenBack(new RetryLater('x', { afterMs: 5 }), nowMs)).toMatchObject({
      retryAt: new Date(nowMs + 5),
    })
    const at = '2026-01-01T00:00:00.000001Z'
    expect(givenBack(new RetryLater('x', { at }), nowMs)).toMatchObject({ retryAt: at, isDead: false })
    expect(givenBack(new Dead('x'), nowMs)).toMatchObject({ isDead: true })
  })

  it('cannot choose a time that is none', () => {
    for (const thrown of [
      new RetryLater('x', { afterMs: Number.NaN }),
      new RetryLater('x', { at: 'tomorrow' }),
      new RetryLater('x', { at: new Date(Number.NaN) }),
    ]) {
      expect(givenBack(thrown, nowMs)).not.toHaveProperty('retryAt')
    }
  })

  it('is recorded with its cause', () => {
    const dead = new Dead('never', { reason: 'bad', cause: new TypeError('wrong') })
    expect(givenBack(dead, nowMs).failure).toMatchObject({
      errorClass: 'TypeError',
      message: 'never: wrong',
      reason: 'bad',
    })
    expect(givenBack(new Dead('never'), nowMs).failure).toMatchObject({
      errorClass: 'Dead',
      message: 'never',
    })
  })
})

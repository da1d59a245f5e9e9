import { describe, expect, it } from 'vitest'
import { cleanTracestate, formatTraceparent, parseTraceparent } from './trace-context.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'

describe('a traceparent', () => {
  it('a valid traceparent is read, and is written as it was', () => {
    const sampled = `00-${traceId}-${spanId}-01`
    expect(parseTraceparent(sampled)).toEqual({ traceId, spanId, isSampled: true, tracestate: '' })
    expect(parseTraceparent(`00-${traceId}-${spanId}-00`)?.isSampled).toBe(false)
    expect(formatTraceparent(parseTraceparent(sampled) as never)).toBe(sampled)
  })

  it('only the first flag decides whether a trace is sampled', () => {
    expect(parseTraceparent(`00-${traceId}-${spanId}-03`)?.isSampled).toBe(true)
    expect(parseTraceparent(`00-${traceId}-${spanId}-fe`)?.isSampled).toBe(false)
  })

  it('fields that a later version adds are ignored', () => {
    const later = parseTraceparent(`cc-${traceId}-${spanId}-01-what-the-future-will-be-like`)
    expect(later).toMatchObject({ traceId, spanId, isSampled: true })
    expect(formatTraceparent(later as never)).toBe(`00-${traceId}-${spanId}-01`)
    expect(parseTraceparent(`cc-${traceId}-${spanId}-01`)).toMatchObject({ traceId })
  })

  it.each([
    ['an empty text', ''],
    ['another text', 'x'.repeat(55)],
    ['upper case', `00-${traceId.toUpperCase()}-${spanId}-01`],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${spanId}-01`],
    ['a span id of zeros', `00-${traceId}-${'0'.repeat(16)}-01`],
    ['the forbidden version', `ff-${traceId}-${spanId}-01`],
    ['version 00 with further fields', `00-${traceId}-${spanId}-01-x`],
    ['a later version with text behind the flags', `01-${traceId}-${spanId}-01x`],
    ['a text behind a line break', `00-${traceId}-${spanId}-01\nx`],
    ['a short trace id', `00-${traceId.slice(1)}-${spanId}-011`],
    ['flags that are no number', `00-${traceId}-${spanId}-zz`],
    ['a very long text', `01-${traceId}-${spanId}-01-${'x'.repeat(10_000)}`],
    ['two values in one header', `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`],
  ])('%s is not a traceparent', (_, text) => {
    expect(parseTraceparent(text)).toBeUndefined()
  })
})

describe('a tracestate', () => {
  it('valid members are kept in their order, and empty ones are left out', () => {
    expect(cleanTracestate('rojo=00f067, ,congo=t61 , tenant@vendor=a b')).toBe(
      'rojo=00f067,congo=t61,tenant@vendor=a b',
    )
  })

  it.each([
    ['a member without a value', 'rojo'],
    ['a key in upper case', 'Rojo=1'],
    ['a value with an equals sign', 'rojo=1=2'],
    ['a value with a control character', 'rojo=\u0007'],
    ['a key that occurs twice', 'rojo=1,rojo=2'],
    ['33 members', Array.from({ length: 33 }, (_, at) => `k${at}=1`).join(',')],
    ['513 characters', `rojo=${'x'.repeat(508)}`],
  ])('a tracestate with %s is left out', (_, text) => {
    expect(cleanTracestate(text)).toBe('')
    expect(parseTraceparent(`00-${traceId}-${spanId}-01`, text)?.tracestate).toBe('')
  })
})

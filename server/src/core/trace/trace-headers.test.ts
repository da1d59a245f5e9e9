import { describe, expect, it } from 'vitest'
import type { Header } from '../items/item.ts'
import { addTraceHeaders, readTraceHeaders } from './trace-headers.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const context = {
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  spanId: '00f067aa0ba902b7',
  isSampled: true,
  tracestate: 'rojo=1',
}
const parent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

describe('trace headers of items', () => {
  it('items without a trace get the context behind their own headers', () => {
    const own: Header = ['a', bytes('1')]
    const [plain, withOwn] = addTraceHeaders<{ headers?: readonly Header[] }>(
      [{}, { headers: [own] }],
      context,
    )
    const added = [
      ['traceparent', bytes(parent)],
      ['tracestate', bytes('rojo=1')],
    ]
    expect(plain?.headers).toEqual(added)
    expect(withOwn?.headers).toEqual([own, ...added])
    expect(readTraceHeaders(withOwn?.headers ?? [])).toEqual(context)
  })

  it('an item with a trace of its own is not changed, even if its trace is invalid', () => {
    const item = { headers: [['TraceParent', bytes('00-1')]] as readonly Header[] }
    expect(addTraceHeaders([item], context)[0]).toBe(item)
    expect(readTraceHeaders(item.headers)).toBeUndefined()
  })

  it('an item with as many headers as allowed is not changed', () => {
    const headers = Array.from({ length: 99 }, (_, at): Header => [`h${at}`, null])
    expect(addTraceHeaders([{ headers }], context)[0]?.headers).toBe(headers)
  })

  it('the first traceparent with a value counts', () => {
    const headers: Header[] = [
      ['traceparent', null],
      ['traceparent', bytes(parent)],
      ['traceparent', bytes('00-x')],
    ]
    expect(readTraceHeaders(headers)).toEqual({ ...context, tracestate: '' })
  })
})

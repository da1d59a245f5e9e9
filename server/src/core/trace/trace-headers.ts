/** The headers of an item that carry its trace. An item keeps the first `traceparent` that it was given. */
import type { Header } from '../items/item.ts'
import { formatTraceparent, parseTraceparent, type TraceContext } from './trace-context.ts'

export const traceHeaders = { parent: 'traceparent', state: 'tracestate' } as const

/** The number of headers that an item may have. Trace headers are not added beyond it. */
const headersMax = 100

/** The context in the headers of an item; undefined if they have none, or an invalid one. */
export function readTraceHeaders(headers: readonly Header[]): TraceContext | undefined {
  if (headers.length === 0) return undefined
  const parent = findText(headers, traceHeaders.parent)
  if (parent === undefined) return undefined
  return parseTraceparent(parent, findText(headers, traceHeaders.state))
}

/** Adds the context to items that have no trace of their own. */
export function addTraceHeaders<I extends Readonly<{ headers?: readonly Header[] }>>(
  items: readonly I[],
  context: TraceContext,
): readonly I[] {
  const added = toTraceHeaders(context)
  return items.map((item) => {
    const headers = addToHeaders(item.headers ?? [], added)
    return headers === item.headers ? item : { ...item, headers }
  })
}

/** Returns the same list if it has a `traceparent` already, or no space for one. */
export function addToHeaders(headers: readonly Header[], added: readonly Header[]): readonly Header[] {
  const isFull = headers.length + added.length > headersMax
  return isFull || headers.some(([name]) => isTraceHeader(name)) ? headers : [...headers, ...added]
}

export function toTraceHeaders(context: TraceContext): readonly Header[] {
  const encoder = new TextEncoder()
  const parent: Header = [traceHeaders.parent, encoder.encode(formatTraceparent(context))]
  if (context.tracestate === '') return [parent]
  return [parent, [traceHeaders.state, encoder.encode(context.tracestate)]]
}

/** HTTP header names have no case; webhook metadata keeps the case that the client used. */
export function isTraceHeader(name: string): boolean {
  if (name.length !== traceHeaders.parent.length && name.length !== traceHeaders.state.length) return false
  const lower = name.toLowerCase()
  return lower === traceHeaders.parent || lower === traceHeaders.state
}

function findText(headers: readonly Header[], wanted: string): string | undefined {
  for (const [name, value] of headers) {
    if (value === null || name.length !== wanted.length || name.toLowerCase() !== wanted) continue
    return new TextDecoder('latin1').decode(value)
  }
  return undefined
}

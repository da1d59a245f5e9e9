/**
 * The trace of a letter: the trace id in the value of its first header `traceparent` (W3C Trace Context,
 * version 00: `00-<trace id>-<span id>-<flags>`).
 *
 * Both stores have an index on it. Headers are stored as JSON with values in base64 (`encodeHeaders`). The
 * first 36 bytes of the value, up to the trace id and its dash, are exactly 48 characters in base64. So the
 * index needs no column of its own, and an index over existing letters needs no rewriting of rows.
 */
import { Buffer } from 'node:buffer'
import type { Header } from '../../../core/items/item.ts'

const form = /^00-([0-9a-f]{32})-/

/** The beginning of the header in the stored text. A quote after a bracket is never part of a name. */
export const traceHeaderStart = '["traceparent","'
export const tracePrefixLength = 48
/** A `traceparent` of version 00 has 55 bytes, which are this number of characters in base64. */
export const traceValueLength = 76

/** The indexed part of the stored headers of letters with this trace id. */
export function encodeTracePrefix(traceId: string): string {
  return Buffer.from(`00-${traceId}-`).toString('base64')
}

/** The header that lists of letters have, of all headers of a letter. */
export function selectTraceHeader(headers: readonly Header[]): readonly Header[] {
  return headers.filter(([name, value]) => name === 'traceparent' && value !== null).slice(0, 1)
}

/** Undefined if the letter has no trace. */
export function readTraceId(headers: readonly Header[]): string | undefined {
  const found = headers.find(([name, value]) => name === 'traceparent' && value !== null)
  const value = found?.[1]
  return value ? form.exec(Buffer.from(value).toString('latin1'))?.[1] : undefined
}

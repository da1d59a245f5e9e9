/**
 * The context of a span as other systems write it: `traceparent` and `tracestate` of W3C Trace Context. A
 * context comes from clients, so everything is checked: a wrong `traceparent` counts as none, and a
 * `tracestate` that is too long or malformed is left out.
 */
export type TraceContext = Readonly<{
  /** 32 hexadecimal digits, not all zero. */
  traceId: string
  /** 16 hexadecimal digits, not all zero. */
  spanId: string
  isSampled: boolean
  /** Empty: none. */
  tracestate: string
}>

/** Version, trace id, span id, flags. A version after 00 may add fields, which start with a dash. */
const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const lengthOfVersion0 = 55
/** A longer header is no `traceparent` of any version that could be understood. */
const lengthMax = 512

/** Returns undefined if the text is not a valid `traceparent`. */
export function parseTraceparent(text: string, tracestate = ''): TraceContext | undefined {
  if (text.length < lengthOfVersion0 || text.length > lengthMax) return undefined
  const match = form.exec(text)
  if (match === null) return undefined
  const [, version, traceId = '', spanId = '', flags = ''] = match
  if (version === 'ff' || (version === '00' && text.length !== lengthOfVersion0)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  const isSampled = (Number.parseInt(flags, 16) & 1) === 1
  return { traceId, spanId, isSampled, tracestate: cleanTracestate(tracestate) }
}

/** Always version 00, the version that Redrive understands. */
export function formatTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

/** Both limits are those of the specification: what is longer need not be passed on. */
const tracestateCharactersMax = 512
const tracestateMembersMax = 32
const memberForm =
  /^[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/

/** Returns the list without empty members, or an empty text if it is malformed or too long. */
export function cleanTracestate(text: string): string {
  if (text.length > tracestateCharactersMax) return ''
  const members = text.split(',').flatMap((member) => member.trim() || [])
  if (members.length > tracestateMembersMax) return ''
  if (!members.every((member) => memberForm.test(member))) return ''
  const keys = new Set(members.map((member) => member.slice(0, member.indexOf('='))))
  return keys.size === members.length ? members.join(',') : ''
}

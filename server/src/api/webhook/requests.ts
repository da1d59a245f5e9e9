/** Parts of requests that several routes read: forms, conditions, tokens and the positions of pages. */
import { Buffer, isUtf8 } from 'node:buffer'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type TObject, Type } from 'typebox'
import { findTextFault } from '../../core/text/storable-text.ts'
import { formatHttpDate, parseHttpDate } from '../../core/time/http-date.ts'
import { type Instant, toDate } from '../../core/time/instant.ts'
import { checkGatewaySignature } from '../../core/webhook/gateway-signature.ts'
import { formatPageCursor, parsePageCursor } from '../../core/webhook/page-cursor.ts'
import type { ChangeCondition, ConditionRefusal } from '../../core/webhook/put.ts'
import { isSameToken } from '../../core/webhook/token.ts'
import { KnownError } from '../../errors.ts'
import type { PageQuery } from '../../storage/contract/webhooks.ts'
import type { ApiContext } from '../context.ts'
import { readMediaType } from './dialect.ts'

export const idMax = 255
const noBytes = new Uint8Array()

const id = (what: string) => Type.String({ description: `Id of the ${what}.` })
export const ProducerParams = Type.Object({ producerId: id('producer') })
export const ChannelParams = Type.Object({ channelId: id('channel') })
export const ConsumerParams = Type.Object({ channelId: id('channel'), consumerId: id('consumer') })
export const JobParams = Type.Object({
  channelId: id('channel'),
  consumerId: id('consumer'),
  jobId: id('job'),
})
export const MessageParams = Type.Object({ channelId: id('channel'), messageId: id('message') })

export const tokenHeaders = {
  'X-Broker-Channel-Token': Type.String({ description: 'Token of the channel.' }),
  'X-Broker-Consumer-Token': Type.String({ description: 'Token of the consumer.' }),
}

/** The path of an object, as it is linked. */
export function toPath(...parts: readonly string[]): string {
  return parts.map((part) => `/${encodeURIComponent(part)}`).join('')
}

export function readBytes({ body }: { body: unknown }): Uint8Array {
  return body instanceof Uint8Array ? body : noBytes
}

/** Optional: mode `hmac`. Every request to this API is signed, unless its path is exempt. */
export function checkGateway(
  request: FastifyRequest,
  context: Pick<ApiContext, 'webhookGateway' | 'clock'>,
  body = readBytes(request),
): void {
  const { webhookGateway, clock } = context
  if (webhookGateway === null || isExemptFromGateway(request, context)) return
  const problem = checkGatewaySignature({
    header: readHeader(request, 'x-broker-signature') ?? undefined,
    body,
    secret: webhookGateway.secret,
    toleranceSeconds: webhookGateway.toleranceSeconds,
    now: clock.now(),
  })
  if (problem === undefined) return
  if (problem === 'malformed') {
    throw new KnownError('SIGNATURE_MISSING', 'the header X-Broker-Signature is missing or malformed')
  }
  const reason = problem === 'expired' ? 'its time is too far from the time of this server' : 'it is wrong'
  throw new KnownError('SIGNATURE_REFUSED', `the signature in X-Broker-Signature is refused: ${reason}`)
}

export function isExemptFromGateway(
  { raw }: FastifyRequest,
  { webhookGateway }: Pick<ApiContext, 'webhookGateway'>,
): boolean {
  const path = raw.url ?? ''
  return webhookGateway === null || webhookGateway.exemptPaths.some((prefix) => path.startsWith(prefix))
}

const formType = 'application/x-www-form-urlencoded'

/** The first value of each field. */
export function readForm(request: FastifyRequest): URLSearchParams {
  if (readMediaType(request) !== formType) {
    throw new KnownError('UNSUPPORTED_MEDIA_TYPE', `send the body as a form, with Content-Type: ${formType}`)
  }
  return new URLSearchParams(new TextDecoder().decode(readBytes(request)))
}

/** An empty field counts as absent. */
export function readField(form: URLSearchParams, name: string): string | undefined {
  const value = form.get(name)
  if (value === null || value === '') return undefined
  const fault = findTextFault(value)
  if (fault !== undefined) throw new KnownError('BAD_REQUEST', `${name} contains ${fault}`)
  if (value.length > textMax) {
    throw new KnownError('BAD_REQUEST', `${name} has ${value.length} characters; the limit is ${textMax}`)
  }
  return value
}
const textMax = 4_096

/** Ids of new objects: 1 to 255 characters. */
export function checkNewId(what: string, text: string): void {
  if (text.length >= 1 && text.length <= idMax && findTextFault(text) === undefined) return
  throw new KnownError('BAD_REQUEST', `the id of a ${what} has 1 to ${idMax} characters, not ${text.length}`)
}

/** Ids and tokens in headers are UTF-8, as in paths and forms. Bytes that are not count as Latin-1. */
export function readHeader(request: FastifyRequest, name: string): string | null {
  const value = request.headers[name]
  if (typeof value !== 'string') return null
  if (!/[\x80-\xff]/.test(value)) return value
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : value
}

export function readCondition(request: FastifyRequest): ChangeCondition {
  const text = readHeader(request, 'if-unmodified-since')
  if (text === null) return { kind: 'unmodified-since', at: null }
  return { kind: 'unmodified-since', at: parseHttpDate(text) ?? 'unreadable' }
}

export function refuseCondition(refusal: ConditionRefusal): KnownError {
  return refusal === 'condition-missing'
    ? new KnownError('BAD_REQUEST', 'the header If-Unmodified-Since is missing: the object exists already')
    : new KnownError('CONDITION_FAILED', 'the object was changed since the time in If-Unmodified-Since')
}

export function setLastModified(reply: FastifyReply, changedAt: Instant): void {
  reply.header('Last-Modified', formatHttpDate(changedAt))
}

/** A time in whole seconds. */
export function formatSecond(instant: Instant): string {
  return toDate(instant)
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
}

/** `expected`: the channel or the consumer. */
export function checkToken(
  request: FastifyRequest,
  what: 'channel' | 'consumer',
  expected: Readonly<{ id: string; token: string }>,
): void {
  if (isSameToken(expected.token, readHeader(request, `x-broker-${what}-token`))) return
  throw new KnownError('TOKEN_REFUSED', `the token of the ${what} ${expected.id} is missing or wrong`)
}

export const pageMax = 25
export const PageParameters: TObject = Type.Object({
  next: Type.Optional(Type.String({ description: 'Continues to older items.' })),
  previous: Type.Optional(Type.String({ description: 'Goes back to the newer items before a page.' })),
})

/** An unreadable cursor is ignored. */
export function readPage(request: FastifyRequest): PageQuery {
  const { searchParams } = new URL(request.raw.url ?? '', 'http://localhost')
  const [next, previous] = [searchParams.get('next'), searchParams.get('previous')]
  if (next !== null && previous !== null) {
    throw new KnownError('BAD_REQUEST', 'a request can have the parameter next or previous, not both')
  }
  const olderThan = next === null ? undefined : parsePageCursor(next)
  const newerThan = previous === null ? undefined : parsePageCursor(previous)
  return {
    countMax: pageMax,
    ...(olderThan !== undefined && { olderThan }),
    ...(newerThan !== undefined && { newerThan }),
  }
}

type PageRow = Readonly<{ xid: string; createdAt: Instant }>

export const Pages = Type.Record(Type.String(), Type.String(), {
  description: 'Links to the pages next and previous. An empty page has none.',
})

/** Links that keep the other parameters of the query. An empty page has no links. */
export function linkPages(request: FastifyRequest, rows: readonly PageRow[]): Record<string, string> {
  const [first, last] = [rows[0], rows.at(-1)]
  if (first === undefined || last === undefined) return {}
  const { pathname, searchParams } = new URL(request.raw.url ?? '', 'http://localhost')
  const link = (name: 'next' | 'previous', { xid, createdAt }: PageRow): string => {
    const query = new URLSearchParams(searchParams)
    query.delete('next')
    query.delete('previous')
    query.set(name, formatPageCursor({ id: xid, createdAt }))
    return `${pathname}?${query}`
  }
  return { next: link('next', last), previous: link('previous', first) }
}

import { describe, expect, it } from 'vitest'
import fc from '../../../test/fast-check.ts'
import { createPushHeaders, type PushHeaderValues } from './push-headers.ts'

const values: PushHeaderValues = {
  contentType: 'application/json',
  messageId: 'm1',
  priority: 3,
  channelId: 'c',
  consumerId: 'k',
  consumerToken: 'token-12345',
  tokenHeaderName: 'X-Broker-Consumer-Token',
  userAgent: 'Webhook Message Broker',
  requestId: '9m4e2mr0ui3e8a215n4g',
  metadata: [],
  signature: undefined,
}

function toPairs(headers: readonly string[]): [string, string][] {
  return headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1] as string]] : []))
}

describe('the headers of a push', () => {
  it('a push has the headers of the contract, and an empty list of metadata headers', () => {
    expect(Object.fromEntries(toPairs(createPushHeaders(values)))).toEqual({
      'Content-Type': 'application/json',
      'X-Broker-Message-ID': 'm1',
      'X-Broker-Message-Priority': '3',
      'X-Broker-Channel-ID': 'c',
      'X-Broker-Consumer-ID': 'k',
      'X-Broker-Consumer-Token': 'token-12345',
      'User-Agent': 'Webhook Message Broker',
      'X-Request-ID': '9m4e2mr0ui3e8a215n4g',
      'X-Broker-Metadata-Headers': '',
    })
  })

  it('the token is sent under its configured name, and the signature is added', () => {
    const signature = { 'webhook-id': 'j', 'webhook-timestamp': '1', 'webhook-signature': 'v1,x' }
    const headers = Object.fromEntries(
      toPairs(createPushHeaders({ ...values, tokenHeaderName: 'X-My-Token', signature })),
    )
    expect(headers).toMatchObject({ 'X-My-Token': 'token-12345', ...signature })
    expect(headers).not.toHaveProperty('X-Broker-Consumer-Token')
  })

  it('metadata headers are sent, and their names are listed in order', () => {
    const metadata = [
      ['X-Tenant', 'a'],
      ['Traceparent', '00-1'],
      ['Authorization', 'Bearer x'],
    ] as const
    const pairs = toPairs(createPushHeaders({ ...values, metadata }))
    expect(pairs).toContainEqual(['X-Tenant', 'a'])
    expect(pairs).toContainEqual(['X-Broker-Metadata-Headers', 'Authorization,Traceparent,X-Tenant'])
  })

  it('metadata never replaces a header of the push, of the signature or of the connection', () => {
    const names = [
      ...['content-type', 'x-broker-message-id', 'X-BROKER-CONSUMER-TOKEN', 'user-agent', 'x-request-id'],
      ...['X-Broker-Metadata-Headers', 'webhook-signature', 'webhook-id', 'host', 'content-length'],
      ...['transfer-encoding', 'connection', 'Expect', 'upgrade', 'bad name', ''],
    ]
    const metadata = names.map((name) => [name, 'changed'] as const)
    expect(createPushHeaders({ ...values, metadata })).toEqual(createPushHeaders(values))
  })

  it('ids are sent as UTF-8, and received values keep their bytes', () => {
    const headers = createPushHeaders({
      ...values,
      channelId: 'größe',
      metadata: [['X-Place', 'M\xfcnchen']],
    })
    expect(Buffer.from(headers[7] as string, 'latin1').toString('utf8')).toBe('größe')
    expect(toPairs(headers)).toContainEqual(['X-Place', 'M\xfcnchen'])
  })

  it('no text of a client can end a header or make it invalid', () => {
    const text = fc.string({ unit: 'binary' })
    const metadata = fc.array(fc.tuple(text, text))
    fc.assert(
      fc.property(text, text, metadata, (channelId, consumerToken, pairs) => {
        for (const [name, value] of toPairs(
          createPushHeaders({ ...values, channelId, consumerToken, contentType: channelId, metadata: pairs }),
        )) {
          expect(name).toMatch(/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/)
          expect(value).toMatch(/^[\t\x20-\x7e\x80-\xff]*$/)
        }
      }),
    )
  })
})

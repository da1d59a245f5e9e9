import { expect, it } from 'vitest'
import { Secret } from '../../src/config/secrets/secret.ts'
import { createGatewaySignature } from '../../src/core/webhook/gateway-signature.ts'
import { startTestServer } from '../http/test-server.ts'
import { bytes } from '../make.ts'
import { describeWebhookServers } from './webhook-server.ts'

const secret = 'a shared secret'
const settings = {
  'webhooks.gateway_auth': 'hmac',
  'webhooks.gateway_secret': new Secret(Buffer.from(secret).toString('base64')),
} as const

describeWebhookServers('requests that a gateway signs', settings, ({ send }) => {
  const sign = (body: string, agedSeconds = 0) => ({
    'X-Broker-Signature': createGatewaySignature(
      bytes(secret),
      Math.floor(Date.now() / 1_000) - agedSeconds,
      bytes(body),
    ),
  })

  it('a request without a signature, with an old one or with a wrong one is refused', async () => {
    const put = async (headers: Record<string, string>, body = 'token=abc') =>
      (
        await send('PUT', '/channel/c', {
          body,
          headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
        })
      ).status
    expect(await put({})).toBe(401)
    expect(await put({ 'X-Broker-Signature': 'x' })).toBe(401)
    expect(await put(sign('token=abc', 400))).toBe(403)
    expect(await put(sign('token=abd'))).toBe(403)
    expect(await put(sign('token=abc'))).toBe(200)
    expect((await send('GET', '/channel/c')).status).toBe(401)
    expect((await send('GET', '/channel/c', { headers: sign('') })).status).toBe(200)
    expect((await send('GET', '/_status')).status).toBe(200)
  })

  it('a request is checked before its path and method, and an exempt path is not', async () => {
    const status = async (method: string, path: string, body?: string, headers = {}) =>
      (await send(method, path, { ...(body !== undefined && { body }), headers })).status
    for (const [method, path] of [
      ['GET', '/channel/c/nothing'],
      ['POST', '/channel/c/nothing/at/all'],
      ['DELETE', '/channel/c'],
      ['PATCH', '/dlq-status'],
    ] as const) {
      const body = method === 'GET' ? undefined : 'some body'
      expect(await status(method, path, body), path).toBe(401)
      expect(await status(method, path, body, sign('wrong')), path).toBe(403)
      const expected = path.includes('nothing') ? 404 : 405
      expect(await status(method, path, body, sign(body ?? '')), path).toBe(expected)
    }
    expect(await status('POST', '/_status', 'x')).toBe(405)
    expect(await status('GET', '/metrics')).toBe(200)
    expect(await status('GET', '/nothing-of-webhooks')).toBe(404)
  })
})

it('a server in mode hmac does not start without a secret in base64', async () => {
  await expect(startTestServer({ 'webhooks.gateway_auth': 'hmac' })).rejects.toThrow(
    'webhooks.gateway_secret',
  )
})

import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { verifyWebhook, WebhookVerificationError } from './verify-webhook.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const other = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
const now = new Date('2026-11-18T12:00:00Z')
const timestamp = String(now.getTime() / 1_000)
const body = '{"test": 2432232314, "ü": "\\u0000"}'

function sign(key: string, at = timestamp, id = 'msg_1', signed: string | Uint8Array = body): string {
  const bytes = Buffer.from(key.slice('whsec_'.length), 'base64')
  return `v1,${createHmac('sha256', bytes).update(`${id}.${at}.`).update(signed).digest('base64')}`
}

const pushed = (signature: string, at = timestamp) => ({
  'webhook-id': 'msg_1',
  'webhook-timestamp': at,
  'webhook-signature': signature,
})

const findProblem = async (...call: Parameters<typeof verifyWebhook>) => {
  const [secrets, headers, bytes, options] = call
  const error = await verifyWebhook(secrets, headers, bytes, { now, ...options }).catch((thrown) => thrown)
  expect(error).toBeInstanceOf(WebhookVerificationError)
  return (error as WebhookVerificationError).problem
}

describe('verifyWebhook', () => {
  it('verifyWebhook accepts a published example of the Standard Webhooks specification', async () => {
    const headers = {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    }
    const sentAt = new Date(1_614_265_330_000)
    expect(await verifyWebhook(secret, headers, '{"test": 2432232314}', { now: sentAt })).toEqual({
      id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      sentAt,
    })
  })

  it('verifyWebhook accepts the headers of fetch and of Node, with names in any case, and bodies as bytes', async () => {
    const headers = pushed(sign(secret))
    const upper = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toUpperCase(), [value]]),
    )
    for (const given of [headers, new Headers(headers), upper]) {
      expect((await verifyWebhook(secret, given, Buffer.from(body), { now })).id).toBe('msg_1')
    }
    const binary = Uint8Array.from({ length: 256 }, (_, index) => index)
    await verifyWebhook(secret, pushed(sign(secret, timestamp, 'msg_1', binary)), binary, { now })
  })

  it('verifyWebhook accepts one of several signatures and one of several secrets, as during a rotation', async () => {
    await verifyWebhook(secret, pushed(`${sign(other)} v2,x ${sign(secret)}`), body, { now })
    await verifyWebhook([other, secret], pushed(sign(secret)), body, { now })
  })

  it('verifyWebhook refuses another secret, another body, another id and a signature that is no base64', async () => {
    expect(await findProblem(other, pushed(sign(secret)), body)).toBe('wrong-signature')
    expect(await findProblem(secret, pushed(sign(secret)), `${body} `)).toBe('wrong-signature')
    expect(await findProblem(secret, pushed(sign(secret, timestamp, 'msg_2')), body)).toBe('wrong-signature')
    for (const signature of ['v1,', 'v1,***', 'v1', sign(secret).slice(3), sign(secret).slice(0, -6)]) {
      expect(await findProblem(secret, pushed(signature), body)).toBe('wrong-signature')
    }
  })

  it('verifyWebhook refuses a push outside of the tolerance, and a time that is no number', async () => {
    const at = (seconds: number) => String(Number(timestamp) + seconds)
    const signed = (time: string) => pushed(sign(secret, time), time)
    await verifyWebhook(secret, signed(at(-300)), body, { now })
    await verifyWebhook(secret, signed(at(300)), body, { now })
    expect(await findProblem(secret, signed(at(-301)), body)).toBe('too-old')
    expect(await findProblem(secret, signed(at(301)), body)).toBe('too-new')
    expect(await findProblem(secret, signed(at(-11)), body, { toleranceSeconds: 10 })).toBe('too-old')
    for (const time of ['soon', '1e9', '-1', '9'.repeat(400)]) {
      expect(await findProblem(secret, signed(time), body)).toBe('bad-timestamp')
    }
  })

  it('verifyWebhook refuses a push without one of the headers', async () => {
    for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
      expect(await findProblem(secret, { ...pushed(sign(secret)), [name]: undefined }, body)).toBe(
        'missing-header',
      )
    }
  })

  it('verifyWebhook throws a TypeError for a malformed secret, so that a wrong configuration is not taken for an attack', async () => {
    for (const malformed of ['', 'whsec_', 'whsec_***', secret.slice('whsec_'.length), []]) {
      await expect(verifyWebhook(malformed, pushed(sign(secret)), body, { now })).rejects.toThrow(TypeError)
    }
  })
})

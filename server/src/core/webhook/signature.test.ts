import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { bytes, hour, noon, second } from '../../../test/make.ts'
import {
  createSigningSecret,
  findSigningSecretProblem,
  listSigningSecrets,
  rotateSigningSecret,
  signPush,
} from './signature.ts'

const first = createSigningSecret(new Uint8Array(24).fill(1))
const next = createSigningSecret(new Uint8Array(32).fill(2))
const message = { id: 'job-1', sentAt: noon + 999_999, body: bytes('{"a":1}') }

describe('signatures of pushes', () => {
  it('a push is signed as in the example of the specification', () => {
    const secrets = { current: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', previous: null }
    const headers = signPush(secrets, {
      id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      sentAt: 1_614_265_330 * second,
      body: bytes('{"test": 2432232314}'),
    })
    expect(headers).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    })
  })

  it('the signature covers id, whole seconds and the bytes of the body', () => {
    const digest = createHmac('sha256', new Uint8Array(24).fill(1))
      .update(`job-1.${noon / second}.{"a":1}`)
      .digest('base64')
    expect(signPush({ current: first, previous: null }, message)['webhook-signature']).toBe(`v1,${digest}`)
  })

  it('after a rotation both secrets sign for 24 hours, then only the new one', () => {
    const rotated = rotateSigningSecret({ current: first, previous: null }, next, noon)
    expect(listSigningSecrets(rotated, noon + 24 * hour - 1)).toEqual([next, first])
    expect(listSigningSecrets(rotated, noon + 24 * hour)).toEqual([next])
    expect(signPush(rotated, message)['webhook-signature'].split(' ')).toHaveLength(2)
    const old = signPush({ current: first, previous: null }, message)['webhook-signature']
    expect(signPush(rotated, message)['webhook-signature'].split(' ')).toContain(old)
  })

  it('a second rotation ends the oldest secret, and the same secret again changes nothing', () => {
    const once = rotateSigningSecret({ current: first, previous: null }, next, noon)
    const third = createSigningSecret(new Uint8Array(24).fill(3))
    expect(listSigningSecrets(rotateSigningSecret(once, third, noon + hour), noon + hour)).toEqual([
      third,
      next,
    ])
    expect(rotateSigningSecret(once, next, noon + hour)).toEqual(once)
    expect(rotateSigningSecret(once, third, noon, 0)).toEqual({ current: third, previous: null })
  })

  it.each(['', 'secret', 'whsec_', 'whsec_!!!', 'whsec_c2hvcnQ='])('%j is not a signing secret', (text) => {
    expect(findSigningSecretProblem(text)).toBeTypeOf('string')
  })

  it('a created secret is valid, and too few random bytes are refused', () => {
    expect(findSigningSecretProblem(first)).toBeUndefined()
    expect(() => createSigningSecret(new Uint8Array(23))).toThrow('24 to 64 bytes, not 23')
    expect(() => signPush({ current: 'secret', previous: null }, message)).toThrow('starts with "whsec_"')
  })
})

import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import fc from '../../../test/fast-check.ts'
import { bytes, noon, second } from '../../../test/make.ts'
import { checkGatewaySignature, createGatewaySignature, parseGatewaySecret } from './gateway-signature.ts'

const secret = bytes('a shared secret')
const seconds = noon / second
const request = { body: bytes('hello'), secret, toleranceSeconds: 300, now: noon }
const valid = createGatewaySignature(secret, seconds, request.body)

describe('the gateway signature', () => {
  it('the signature is the HMAC of time, full stop and body in lower-case hex', () => {
    const digest = createHmac('sha256', secret).update(`${seconds}.hello`).digest('hex')
    expect(valid).toBe(`t=${seconds},v1=${digest}`)
    expect(checkGatewaySignature({ ...request, header: valid })).toBeUndefined()
  })

  it('an empty body is signed as time and full stop', () => {
    const digest = createHmac('sha256', secret).update(`${seconds}.`).digest('hex')
    const header = `t=${seconds},v1=${digest}`
    expect(checkGatewaySignature({ ...request, body: new Uint8Array(), header })).toBeUndefined()
  })

  it.each([
    undefined,
    '',
    't=1',
    'v1=ab',
    't=,v1=ab',
    't=x,v1=ab',
    't=1,v1=',
    't=1;v1=ab',
    't=1.5,v1=ab',
    't=1,t=1,v1=ab',
  ])('the header %j is malformed', (header) => {
    expect(checkGatewaySignature({ ...request, header })).toBe('malformed')
  })

  it('a time is accepted up to the tolerance in both directions', () => {
    const at = (offset: number) => {
      const header = createGatewaySignature(secret, seconds + offset, request.body)
      return checkGatewaySignature({ ...request, header })
    }
    expect([at(-300), at(300)]).toEqual([undefined, undefined])
    expect([at(-301), at(301)]).toEqual(['expired', 'expired'])
  })

  it('another body, secret, digit, case or length is a wrong signature', () => {
    const check = (changes: object, header = valid) =>
      checkGatewaySignature({ ...request, header, ...changes })
    expect(check({ body: bytes('Hello') })).toBe('wrong')
    expect(check({ secret: bytes('another secret') })).toBe('wrong')
    expect(check({}, valid.slice(0, -1) + (valid.endsWith('0') ? '1' : '0'))).toBe('wrong')
    expect(
      check(
        {},
        valid.replace(/v1=.*/, (digest) => `v1=${digest.slice(3).toUpperCase()}`),
      ),
    ).toBe('wrong')
    expect(check({}, valid.slice(0, -2))).toBe('wrong')
    expect(check({}, `t=${seconds},v1=invalid`)).toBe('wrong')
    expect(check({}, `t=${seconds},v1=${'é'.repeat(32)}`)).toBe('wrong')
  })

  it('no header makes the check throw or succeed by chance', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (header) => {
        expect(checkGatewaySignature({ ...request, header })).not.toBeUndefined()
      }),
    )
  })

  it('a secret must be base64 and not empty', () => {
    expect(parseGatewaySecret('c2VjcmV0')).toEqual(bytes('secret'))
    for (const text of ['', 'not base64!', 'a', 'c2Vjc=mV0', 'c2VjcmV0=']) {
      expect(parseGatewaySecret(text)).toBeUndefined()
    }
  })
})

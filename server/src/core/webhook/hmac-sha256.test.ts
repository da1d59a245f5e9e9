import { createHmac } from 'node:crypto'
import { expect, it } from 'vitest'
import { createHmacKey, signSha256 } from './hmac-sha256.ts'

it('the signature is that of createHmac for keys and bodies of any length', () => {
  for (const keyLength of [0, 1, 24, 63, 64, 65, 200]) {
    const bytes = new Uint8Array(keyLength).map((_, at) => (at * 7 + 1) % 256)
    const key = createHmacKey(bytes)
    const long = 'x'.repeat(300)
    expect(signSha256(key, long, bytes)).toBe(
      createHmac('sha256', bytes).update(long).update(bytes).digest('base64'),
    )
    for (const bodyLength of [0, 1, 55, 56, 64, 1_000, 16 * 1_024, 16 * 1_024 + 1, 100_000]) {
      const body = new Uint8Array(bodyLength).map((_, at) => at % 251)
      const expected = createHmac('sha256', bytes).update('id.1700000000.').update(body).digest('base64')
      expect(signSha256(key, 'id.1700000000.', body), `${keyLength}, ${bodyLength}`).toBe(expected)
    }
  }
})

import { createClient } from '@redis/client'
import { describe, expect, it } from 'vitest'
import { needs, requireService } from './require-service.ts'

const redis = await requireService('redis')

describe('the shared Redis', needs(redis), () => {
  it('Redis stores and returns a value', async () => {
    const client = createClient({ url: redis.url })
    await client.connect()
    try {
      await client.set('redrive:greeting', 'hello', { expiration: { type: 'EX', value: 60 } })
      expect(await client.get('redrive:greeting')).toBe('hello')
    } finally {
      client.destroy()
    }
  })
})

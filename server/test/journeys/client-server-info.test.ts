import type { Static } from 'typebox'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { createClient, type ErrorBody, type Health, type ServerInfo } from '../../../client/src/index.ts'
import { ErrorBody as ErrorSchema } from '../../src/api/v1/dialect.ts'
import { Info } from '../../src/api/v1/info.ts'
import { HealthBody } from '../../src/api/watch/health.ts'
import { startTestServer } from '../http/test-server.ts'

describe('the client package', () => {
  it('the info and health of a real server match the types of the client', async () => {
    const { url } = await startTestServer()
    const client = createClient({ url })
    expect(await client.getInfo()).toMatchObject({
      name: 'redrive',
      store: { kind: 'memory', is_up: true },
      uptime_seconds: expect.any(Number),
      limits: { body_bytes_max: 64_000_000, keep_alive_timeout: '2m5s' },
    })
    expect(await client.getHealth()).toMatchObject({
      status: 'pass',
      checks: { 'queues:storage': [{ componentType: 'datastore', status: 'pass' }] },
    })
  })

  it('the server schemas of info, health and errors extend the types of the client', () => {
    expectTypeOf<Static<typeof Info>>().toExtend<ServerInfo>()
    expectTypeOf<Static<typeof HealthBody>>().toExtend<Health>()
    expectTypeOf<Static<typeof ErrorSchema>>().toExtend<ErrorBody>()
    expect([Info, HealthBody, ErrorSchema]).toHaveLength(3)
  })
})

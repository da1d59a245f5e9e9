import { describe, expect, it } from 'vitest'
import { KnownError } from '../../../errors.ts'
import { createOpenRequests } from './open-requests.ts'

function createCase() {
  const state = { epoch: 1, ms: 0, isReadable: true, checks: 0, reason: undefined as string | undefined }
  const ended: string[] = []
  const requests = createOpenRequests({
    readEpoch: async () => {
      if (!state.isReadable) throw new KnownError('STORE_UNAVAILABLE', 'the store is down')
      return state.epoch
    },
    intervalMs: 1_000_000,
    nowMs: () => state.ms,
  })
  const add = (name: string) =>
    requests.add({
      check: async () => {
        state.checks++
        if (state.reason !== undefined) throw new KnownError(state.reason as never, state.reason)
      },
      end: ({ code }) => ended.push(`${name} ${code}`),
    })
  return { state, ended, requests, add }
}

describe('requests that wait', () => {
  it('a request ends with the reason for which its credential is refused, once', async () => {
    const { state, ended, requests, add } = createCase()
    add('lease')
    await requests.pass()
    expect(ended).toEqual([])
    state.epoch = 2
    state.reason = 'CREDENTIAL_REFUSED'
    await requests.pass()
    state.epoch = 3
    await requests.pass()
    expect(ended).toEqual(['lease CREDENTIAL_REFUSED'])
  })

  it('requests are checked when a credential changed, and every second because credentials expire', async () => {
    const { state, requests, add } = createCase()
    add('lease')
    await requests.pass()
    for (let pass = 0; pass < 5; pass++) {
      state.ms += 100
      await requests.pass()
    }
    expect(state.checks).toBe(1)
    state.epoch = 2
    await requests.pass()
    expect(state.checks).toBe(2)
    state.ms += 1_000
    await requests.pass()
    expect(state.checks).toBe(3)
  })

  it('a request that has ended is not checked', async () => {
    const { state, requests, add } = createCase()
    add('lease')()
    await requests.pass()
    expect(state.checks).toBe(0)
  })

  it('while the store cannot be read, requests wait and are checked afterwards', async () => {
    const { state, ended, requests, add } = createCase()
    add('events')
    state.isReadable = false
    await expect(requests.pass()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    state.isReadable = true
    state.reason = 'STORE_UNAVAILABLE'
    await requests.pass()
    expect(ended).toEqual([])
    state.ms += 1_000
    state.reason = 'ACCESS_DENIED'
    await requests.pass()
    expect(ended).toEqual(['events ACCESS_DENIED'])
  })
})

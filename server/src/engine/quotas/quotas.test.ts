import { describe, expect, it } from 'vitest'
import type { Namespace, Quota } from '../../core/access/records.ts'
import { createQuotas, type Quotas } from './quotas.ts'

/** A store with one namespace, and a clock that tests advance. */
function createStore(quota: Quota) {
  const store = {
    ms: 0,
    quota,
    stored: { queues: 1, items: 0, bytes: 0 },
    reads: 0,
    refused: [] as string[],
    open: (): Quotas =>
      createQuotas({
        storage: {
          listAccess: async () =>
            [
              { name: 'shop', description: '', keyTag: '', createdAt: 0, quota: store.quota },
            ] as Namespace[] as never,
          readUsage: async () => {
            store.reads++
            return { ...store.stored }
          },
        },
        onRefused: (name, namespace) => store.refused.push(`${name} of ${namespace}`),
        onError: (error) => {
          throw error
        },
        nowMs: () => store.ms,
      }),
    /** As a write does: the items are stored when it ends. */
    write: async (quotas: Quotas, count: number, bytes = 0): Promise<boolean> => {
      try {
        const release = await quotas.admit('shop', count, () => bytes)
        await Promise.resolve()
        store.stored = {
          ...store.stored,
          items: store.stored.items + count,
          bytes: store.stored.bytes + bytes,
        }
        release?.()
        return true
      } catch {
        return false
      }
    },
  }
  return store
}

describe('the quotas of namespaces', () => {
  it('one server never exceeds a quota of items, also with many calls at once', async () => {
    const store = createStore({ itemsMax: 10 })
    const quotas = store.open()
    const results = await Promise.all(Array.from({ length: 50 }, () => store.write(quotas, 1)))
    expect(results.filter(Boolean)).toHaveLength(10)
    expect(store.stored.items).toBe(10)
    expect(store.refused).toHaveLength(40)
    expect(store.refused[0]).toBe('items of shop')
  })

  it('one server never exceeds a quota of bytes', async () => {
    const store = createStore({ bytesMax: 1_000 })
    const quotas = store.open()
    for (let call = 0; call < 20; call++) {
      await store.write(quotas, 1, 300)
      store.ms += 37
    }
    expect(store.stored.bytes).toBe(900)
  })

  it('space that became free is used again, after the store was read', async () => {
    const store = createStore({ itemsMax: 2 })
    const quotas = store.open()
    expect(await store.write(quotas, 2)).toBe(true)
    store.ms += 100
    expect(await store.write(quotas, 1)).toBe(false)
    store.stored.items = 0
    store.ms += 100
    expect(await store.write(quotas, 2)).toBe(true)
  })

  it('refused calls read the store at most every 100 ms', async () => {
    const store = createStore({ itemsMax: 0 })
    const quotas = store.open()
    for (let call = 0; call < 100; call++) {
      expect(await store.write(quotas, 1)).toBe(false)
      store.ms += 10
    }
    expect(store.reads).toBeLessThanOrEqual(11)
  })

  it('two servers exceed a quota at most by what the other one admits between two readings', async () => {
    const store = createStore({ itemsMax: 100 })
    const servers = [store.open(), store.open()]
    for (let call = 0; call < 400; call++) {
      await store.write(servers[call % 2] as Quotas, 1)
      store.ms += 10
    }
    // Each server sees the items of the other one after 2 s: here at most 100 calls.
    expect(store.stored.items).toBeGreaterThanOrEqual(100)
    expect(store.stored.items).toBeLessThanOrEqual(200)
    const after = store.stored.items
    store.ms += 2_000
    expect(await Promise.all(servers.map((server) => store.write(server, 1)))).toEqual([false, false])
    expect(store.stored.items).toBe(after)
  })

  it('a changed quota is effective after 2 s', async () => {
    const store = createStore({ itemsMax: 0 })
    const quotas = store.open()
    expect(await store.write(quotas, 1)).toBe(false)
    store.quota = { itemsMax: 5 }
    store.ms += 2_000
    expect(await store.write(quotas, 1)).toBe(true)
  })

  it('a namespace without a quota waits for nothing, once the quotas are known', async () => {
    const store = createStore({ itemsMax: 0 })
    const quotas = store.open()
    await quotas.admit('other', 1, () => 0)
    expect(quotas.admit('other', 1_000_000, () => 0)).toBeUndefined()
    expect(quotas.admit('_system', 1_000_000, () => 0)).toBeUndefined()
    expect(store.reads).toBe(0)
  })

  it('a namespace has its requests of each second, and unused ones of one second', async () => {
    const store = createStore({ requestsPerSecondMax: 5 })
    const quotas = store.open()
    await quotas.admit('shop', 1, () => 0)
    const send = () => {
      let admitted = 0
      for (let call = 0; call < 20; call++) {
        try {
          quotas.countRequest(['shop'])
          admitted++
        } catch (error) {
          expect(error).toMatchObject({ code: 'RATE_EXCEEDED', status: 429 })
        }
      }
      return admitted
    }
    expect(send()).toBe(5)
    store.ms += 400
    expect(send()).toBe(2)
    store.ms += 60_000
    expect(send()).toBe(5)
    expect(store.refused).toContain('requests of shop')
  })
})

import type { Storage } from '../../src/storage/contract/storage.ts'

/**
 * The store as a server sees it that is killed at its nth write: before the write reaches the store, or
 * before the answer reaches the server.
 */
export function killStorageAtWrite(
  storage: Storage,
  writes: number,
  when: 'before' | 'after',
): { storage: Storage; isDead(): boolean } {
  let left = writes
  let isDead = false
  const proxy = new Proxy(storage, {
    get: (target, name) => {
      const value = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return async (...given: unknown[]) => {
        if (isDead) throw new Error('killed')
        if (name !== 'write') return value.apply(target, given)
        left--
        if (left > 0) return value.apply(target, given)
        isDead = true
        if (when === 'after') await value.apply(target, given)
        throw new Error('killed')
      }
    },
  })
  // A killed server neither listens nor announces.
  return {
    storage: Object.assign(Object.create(proxy), { onAnnounced: () => () => {} }),
    isDead: () => isDead,
  }
}

import { expect, it } from 'vitest'
import type { HeldLock } from '../../../src/storage/contract/locks.ts'
import { minute, newItems, noon } from '../../make.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('a lock', (given) => {
  let locks = 0
  /** Locks outlive queues, so each test has its own. */
  const aName = () => `lock-${++locks}`
  const acquire = async (name: string, owner: string, now = noon) =>
    given.run({ op: 'acquire-lock', name, owner, now, deadline: now + minute })
  const held = (lock: HeldLock | null): HeldLock => {
    if (lock === null) throw new Error('the lock was not given')
    return lock
  }
  const fence = async (lock: HeldLock) => given.run({ op: 'fence', lock })

  it('a lock has one owner at a time', async () => {
    const name = aName()
    const lock = held(await acquire(name, 'ann'))
    expect(lock.name).toBe(name)
    expect(await acquire(name, 'bob', noon + minute - 1)).toBeNull()
    await fence(lock)
  })

  it('one of many concurrent callers gets the lock', async () => {
    const name = aName()
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) => acquire(name, `owner-${index}`)),
    )
    expect(answers.filter((answer) => answer !== null)).toHaveLength(1)
    const [first, second] = await given.storage.write([
      { op: 'acquire-lock', name: `${name}-b`, owner: 'ann', now: noon, deadline: noon + minute },
      { op: 'acquire-lock', name: `${name}-b`, owner: 'bob', now: noon, deadline: noon + minute },
    ])
    expect([first === null, second === null]).toEqual([false, true])
  })

  it('locks with different names are independent', async () => {
    held(await acquire(aName(), 'ann'))
    held(await acquire(aName(), 'bob'))
  })

  it('a lock past its deadline can be taken over with a larger token', async () => {
    const name = aName()
    const old = held(await acquire(name, 'ann'))
    const next = held(await acquire(name, 'bob', noon + minute))
    expect(next.token).toBeGreaterThan(old.token)
    const error = await expectRefusal(fence(old), 'LOCK_LOST')
    expect(error.message).toContain(name)
    expect(await given.run({ op: 'renew-lock', lock: old, deadline: noon + 9 * minute })).toBe(false)
    expect(await given.run({ op: 'release-lock', lock: old })).toBe(false)
    await fence(next)
    expect(await acquire(name, 'carl', noon + minute)).toBeNull()
  })

  it('a lock past its deadline still fences for its holder until it is taken over', async () => {
    const name = aName()
    const lock = held(await acquire(name, 'ann'))
    await fence(lock)
    expect(await given.run({ op: 'renew-lock', lock, deadline: noon + 10 * minute })).toBe(true)
    expect(await acquire(name, 'bob', noon + 5 * minute)).toBeNull()
    held(await acquire(name, 'bob', noon + 11 * minute))
  })

  it('an owner that acquires its lock again gets a new token and loses the old one', async () => {
    const name = aName()
    const old = held(await acquire(name, 'ann'))
    const next = held(await acquire(name, 'ann'))
    expect(next.token).toBeGreaterThan(old.token)
    await expectRefusal(fence(old), 'LOCK_LOST')
    await fence(next)
  })

  it('a lost lock undoes the whole write that it fences', async () => {
    const name = aName()
    const queue = await given.queue()
    const old = held(await acquire(name, 'ann'))
    held(await acquire(name, 'bob', noon + 2 * minute))
    const produce = { op: 'produce', queue, partition: 0, items: newItems(1), now: noon } as const
    await expectRefusal(given.storage.write([produce, { op: 'fence', lock: old }]), 'LOCK_LOST')
    await expectRefusal(given.storage.write([{ op: 'fence', lock: old }, produce]), 'LOCK_LOST')
    expect(await given.storage.listItems({ queue, countMax: 10 })).toEqual([])
  })

  it('a held lock lets the write commit', async () => {
    const queue = await given.queue()
    const lock = held(await acquire(aName(), 'ann'))
    const produce = { op: 'produce', queue, partition: 0, items: newItems(1), now: noon } as const
    await given.storage.write([{ op: 'fence', lock }, produce])
    expect(await given.storage.listItems({ queue, countMax: 10 })).toHaveLength(1)
  })

  it('a released lock is free, and the next token is larger', async () => {
    const name = aName()
    const first = held(await acquire(name, 'ann'))
    expect(await given.run({ op: 'release-lock', lock: first })).toBe(true)
    expect(await given.run({ op: 'release-lock', lock: first })).toBe(false)
    expect(await given.run({ op: 'renew-lock', lock: first, deadline: noon + 9 * minute })).toBe(false)
    const second = held(await acquire(name, 'bob'))
    expect(second.token).toBeGreaterThan(first.token)
    await expectRefusal(fence(first), 'LOCK_LOST')
  })

  it('a fence for a lock that was never held rejects the write', async () => {
    await expectRefusal(fence({ name: aName(), token: 1 }), 'LOCK_LOST')
  })
})

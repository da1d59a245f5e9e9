import { describe, expect, it } from 'vitest'
import { createEpochWatch, createPassedMs } from './epoch-watch.ts'

/** A store whose answers a test holds back, and a clock that it advances. */
function createCase(trustMs: number) {
  const store = { epoch: 1, ms: 0, answers: [] as ((isRead: boolean) => void)[] }
  const watch = createEpochWatch({
    readEpoch: () => {
      const { epoch } = store
      return new Promise<number>((resolve, reject) =>
        store.answers.push((isRead) => (isRead ? resolve(epoch) : reject(new Error('no store')))),
      )
    },
    trustMs,
    nowMs: () => store.ms,
  })
  const answer = async (isRead = true) => {
    store.answers.shift()?.(isRead)
    for (let turn = 0; turn < 5; turn++) await Promise.resolve()
  }
  return { store, watch, answer }
}

describe('the memory of credentials', () => {
  it('an answer that was delayed for longer than it is trusted is read again', async () => {
    const { store, watch, answer } = createCase(400)
    const early = watch.check()
    // The store has read the epoch, but its answer does not arrive. A key is revoked, and answered.
    store.epoch = 2
    store.ms = 5_000
    let epoch = 0
    const late = watch.check().then(() => {
      epoch = watch.epoch
    })
    store.ms = 10_000
    await answer()
    await early
    expect(epoch).toBe(0)
    await answer()
    await late
    expect(epoch).toBe(2)
  })

  it('a read that began after the request is used, however slow its answer', async () => {
    const { store, watch, answer } = createCase(400)
    const check = watch.check()
    store.ms = 5_000
    await answer()
    await check
    expect(watch.epoch).toBe(1)
    expect(store.answers).toHaveLength(0)
    expect(watch.isTrusted()).toBe(false)
  })

  it('a server that is cut off from its store trusts nothing after the time of trust', async () => {
    const { store, watch, answer } = createCase(400)
    const check = watch.check()
    await answer()
    await check
    store.ms = 399
    expect(watch.isTrusted()).toBe(true)
    await answer(false)
    store.ms = 400
    expect(watch.isTrusted()).toBe(false)
    const failing = expect(watch.check()).rejects.toThrow('no store')
    await answer(false)
    await failing
  })

  it('after its own change a server trusts no read that began before, also if the store then fails', async () => {
    const { store, watch, answer } = createCase(Number.POSITIVE_INFINITY)
    const first = watch.check()
    await answer()
    await first
    expect(watch.isTrusted()).toBe(true)
    store.ms = 10
    const before = watch.check()
    store.ms = 20
    store.epoch = 2
    const refreshing = expect(watch.refresh()).rejects.toThrow('no store')
    const late = expect(before).rejects.toThrow('no store')
    await answer()
    await answer(false)
    await Promise.all([refreshing, late])
    expect(watch.isTrusted()).toBe(false)
  })
})

describe('the time that has passed', () => {
  it('a suspended machine does not stop it, and a clock that is set back does not either', () => {
    const clock = { monotonic: 0, machine: 1_000_000 }
    const passed = createPassedMs(
      () => clock.monotonic,
      () => clock.machine,
    )
    const start = passed()
    clock.monotonic += 100
    clock.machine += 100
    expect(passed() - start).toBe(100)
    // One hour of sleep, which the monotonic clock does not see.
    clock.machine += 3_600_000
    expect(passed() - start).toBe(3_600_100)
    clock.machine -= 7_200_000
    clock.monotonic += 50
    expect(passed() - start).toBe(3_600_150)
  })
})

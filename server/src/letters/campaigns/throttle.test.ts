import { expect, it } from 'vitest'
import { createThrottle } from './throttle.ts'

it('a pause is long enough that the work was its share of the time, and at most one second', () => {
  let now = 5
  const throttle = createThrottle(0.25, () => now)
  expect(throttle.isPaused('a')).toBe(false)
  throttle.pause('a', 20)
  throttle.pause('b', 5_000)
  now += 59
  expect([throttle.isPaused('a'), throttle.isPaused('b'), throttle.isPaused('c')]).toEqual([
    true,
    true,
    false,
  ])
  now += 1
  expect([throttle.isPaused('a'), throttle.isPaused('b')]).toEqual([false, true])
  now += 940
  expect(throttle.isPaused('b')).toBe(false)
})

it('a wait ends with the first pause, on abort, or after 100 ms', async () => {
  const throttle = createThrottle(0.25, () => 0)
  throttle.pause('long', 60_000)
  await throttle.wait(AbortSignal.abort())
  await throttle.wait(new AbortController().signal)
  throttle.pause('over', 0)
  await throttle.wait(new AbortController().signal)
  expect([throttle.isPaused('long'), throttle.isPaused('over')]).toEqual([true, false])
  throttle.keepOnly(new Set(['over']))
  expect(throttle.isPaused('long')).toBe(false)
})

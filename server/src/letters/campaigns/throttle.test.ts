import { expect, it } from 'vitest'
import { createRests } from './throttle.ts'

it('a rest is so long that the work was its share of the time, and a second at most', () => {
  let now = 5
  const rests = createRests(0.25, () => now)
  expect(rests.isResting('a')).toBe(false)
  rests.begin('a', 20)
  rests.begin('b', 5_000)
  now += 59
  expect([rests.isResting('a'), rests.isResting('b'), rests.isResting('c')]).toEqual([true, true, false])
  now += 1
  expect([rests.isResting('a'), rests.isResting('b')]).toEqual([false, true])
  now += 940
  expect(rests.isResting('b')).toBe(false)
})

it('a wait for rests ends with the first of them, when it is stopped, or when others may have something to do', async () => {
  const rests = createRests(0.25, () => 0)
  rests.begin('long', 60_000)
  await rests.wait(AbortSignal.abort())
  await rests.wait(new AbortController().signal)
  rests.begin('over', 0)
  await rests.wait(new AbortController().signal)
  expect([rests.isResting('long'), rests.isResting('over')]).toEqual([true, false])
  rests.keepOnly(new Set(['over']))
  expect(rests.isResting('long')).toBe(false)
})

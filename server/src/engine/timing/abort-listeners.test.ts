import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import { AbortListeners } from './abort-listeners.ts'

it('a signal has one listener until it was removed as often as it was added', () => {
  const { signal } = new AbortController()
  const listeners = new AbortListeners(() => {})
  listeners.add(signal)
  listeners.add(signal)
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  listeners.remove(signal)
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  listeners.remove(signal)
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
})

it('a listener reports which signal aborted, once', () => {
  const [first, second] = [new AbortController(), new AbortController()]
  const aborted: AbortSignal[] = []
  const listeners = new AbortListeners((signal) => {
    aborted.push(signal)
    listeners.remove(signal)
  })
  for (const { signal } of [first, second]) listeners.add(signal)
  second.abort()
  second.abort()
  expect(aborted).toEqual([second.signal])
})

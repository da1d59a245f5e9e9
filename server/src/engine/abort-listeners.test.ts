import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import { Signals } from './abort-listeners.ts'

it('hears a signal with one listener, until it was dropped as often as it was heard', () => {
  const { signal } = new AbortController()
  const signals = new Signals(() => {})
  signals.hear(signal)
  signals.hear(signal)
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  signals.drop(signal)
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  signals.drop(signal)
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
})

it('tells which signal aborted, once', () => {
  const [first, second] = [new AbortController(), new AbortController()]
  const aborted: AbortSignal[] = []
  const signals = new Signals((signal) => {
    aborted.push(signal)
    signals.drop(signal)
  })
  for (const { signal } of [first, second]) signals.hear(signal)
  second.abort()
  second.abort()
  expect(aborted).toEqual([second.signal])
})

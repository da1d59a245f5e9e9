import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { listenForStop } from './stop-signals.ts'

function listening() {
  const emitter = new EventEmitter()
  const exits: number[] = []
  const signals = listenForStop(emitter as unknown as NodeJS.Process, (code) => exits.push(code))
  const send = (signal: string) => emitter.emit(signal, signal)
  return { emitter, exits, signals, send }
}

it('asks to stop at the first signal', async () => {
  const { signals, send, exits } = listening()
  send('SIGTERM')
  expect(await signals.first).toBe('SIGTERM')
  expect(exits).toEqual([])
})

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
])('ends at once at the second, %s, with %d', (signal, code) => {
  const { send, exits } = listening()
  send('SIGTERM')
  send(signal)
  expect(exits).toEqual([code])
})

it('leaves the process as it was when released', () => {
  const { emitter, signals } = listening()
  signals.release()
  expect(emitter.eventNames()).toEqual([])
})

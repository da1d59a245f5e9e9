import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { listenForStop } from './stop-signals.ts'

function startListening() {
  const emitter = new EventEmitter()
  const exits: number[] = []
  const signals = listenForStop(emitter as unknown as NodeJS.Process, (code) => exits.push(code))
  const send = (signal: string) => emitter.emit(signal, signal)
  return { emitter, exits, signals, send }
}

it('the first signal requests a stop and does not end the process', async () => {
  const { signals, send, exits } = startListening()
  send('SIGTERM')
  expect(await signals.first).toBe('SIGTERM')
  expect(exits).toEqual([])
})

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
])('the second signal %s ends the process at once with code %d', (signal, code) => {
  const { send, exits } = startListening()
  send('SIGTERM')
  send(signal)
  expect(exits).toEqual([code])
})

it('release removes all signal listeners', () => {
  const { emitter, signals } = startListening()
  signals.release()
  expect(emitter.eventNames()).toEqual([])
})

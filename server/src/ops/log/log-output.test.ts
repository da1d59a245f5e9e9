import { describe, expect, it } from 'vitest'
import { LogOutput } from './log-output.ts'

function createError(code: string): Error {
  return Object.assign(new Error(code), { code })
}

/** A pipe with `freeBytes` of capacity. When it is full, a write fails with EAGAIN, as on a real pipe. */
function createPipe(freeBytes: number) {
  const pipe = { freeBytes, text: '', isClosed: false, writes: 0 }
  const write = (_fd: number, bytes: Uint8Array): number => {
    pipe.writes++
    if (pipe.isClosed) throw createError('EPIPE')
    if (pipe.freeBytes === 0) throw createError('EAGAIN')
    const taken = bytes.subarray(0, pipe.freeBytes)
    pipe.freeBytes -= taken.length
    pipe.text += Buffer.from(taken).toString()
    return taken.length
  }
  return { pipe, output: new LogOutput(1, write) }
}

describe('the log output', () => {
  it('a line is written at once when the pipe has capacity', () => {
    const { pipe, output } = createPipe(100)
    output.write('one\n')
    expect(pipe.text).toBe('one\n')
  })

  it('lines wait in order while the pipe is full, and are written when it has capacity', async () => {
    const { pipe, output } = createPipe(6)
    for (const line of ['one\n', 'two\n', 'three\n']) output.write(line)
    expect(pipe.text).toBe('one\ntw')
    pipe.freeBytes = 100
    await expect.poll(() => pipe.text).toBe('one\ntwo\nthree\n')
  })

  it('waiting lines beyond the limit are dropped, and their number is reported', async () => {
    const { pipe, output } = createPipe(0)
    const line = `${'x'.repeat(1_000_000)}\n`
    for (let count = 0; count < 10; count++) output.write(line)
    pipe.freeBytes = 100_000_000
    await expect.poll(() => pipe.text).toMatch(/5 log lines were dropped/)
    expect(pipe.text.length).toBeLessThan(5_100_000)
  })

  it('flushSync writes the waiting lines, and returns without them when the pipe stays full', () => {
    const { pipe, output } = createPipe(0)
    output.write('the last line\n')
    output.flushSync()
    expect(pipe.text).toBe('')
    pipe.freeBytes = 100
    output.flushSync()
    expect(pipe.text).toBe('the last line\n')
  })

  it('after the pipe was closed, flushSync gives up at the first write and later lines are dropped', () => {
    const { pipe, output } = createPipe(0)
    output.write('one\n')
    pipe.isClosed = true
    const writesBefore = pipe.writes
    output.flushSync()
    output.write('two\n')
    output.flushSync()
    expect(pipe.writes - writesBefore).toBe(1)
  })
})

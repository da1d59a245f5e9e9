import { describe, expect, it } from 'vitest'
import { LogOutput } from './log-output.ts'

function fault(code: string): Error {
  return Object.assign(new Error(code), { code })
}

/** A descriptor that takes so many bytes, then says that nobody reads. */
function aReader(room: number) {
  const reader = { room, text: '', isGone: false }
  const write = (_fd: number, bytes: Uint8Array): number => {
    if (reader.isGone) throw fault('EPIPE')
    if (reader.room === 0) throw fault('EAGAIN')
    const taken = bytes.subarray(0, reader.room)
    reader.room -= taken.length
    reader.text += Buffer.from(taken).toString()
    return taken.length
  }
  return { reader, output: new LogOutput(1, write) }
}

describe('the output of the log', () => {
  it('has a line written when it was said', () => {
    const { reader, output } = aReader(100)
    output.write('one\n')
    expect(reader.text).toBe('one\n')
  })

  it('keeps what nobody reads, in order, until somebody does', async () => {
    const { reader, output } = aReader(6)
    for (const line of ['one\n', 'two\n', 'three\n']) output.write(line)
    expect(reader.text).toBe('one\ntw')
    reader.room = 100
    await expect.poll(() => reader.text).toBe('one\ntwo\nthree\n')
  })

  it('keeps so much and no more, and says how many lines are missing', async () => {
    const { reader, output } = aReader(0)
    const line = `${'x'.repeat(1_000_000)}\n`
    for (let count = 0; count < 10; count++) output.write(line)
    reader.room = 100_000_000
    await expect.poll(() => reader.text).toMatch(/5 log lines were left out/)
    expect(reader.text.length).toBeLessThan(5_100_000)
  })

  it('ends with what waits when somebody reads, and soon when nobody does', () => {
    const { reader, output } = aReader(0)
    output.write('the last words\n')
    const startedAt = performance.now()
    output.flushSync()
    expect(performance.now() - startedAt).toBeLessThan(2_000)
    reader.room = 100
    output.flushSync()
    expect(reader.text).toBe('the last words\n')
  })

  it('ends at once when the reader is gone', () => {
    const { reader, output } = aReader(0)
    output.write('one\n')
    reader.isGone = true
    const startedAt = performance.now()
    output.flushSync()
    output.write('two\n')
    output.flushSync()
    expect(performance.now() - startedAt).toBeLessThan(400)
  })
})

import { describe, expect, it } from 'vitest'
import { LargeBytes, type Part, takeTurns, writeJsonParts } from './json-parts.ts'

const join = (parts: Iterable<Part>): string =>
  Buffer.concat([...parts].map((part) => Buffer.from(part))).toString()

describe('an answer in parts', () => {
  it('large bytes are written as text, as base64 or as the JSON that they are', () => {
    const text = `\ufeff"quoted" \u0000 ü€😀 \\ ${'é😀'.repeat(100_000)}`
    const bytes = Buffer.from(text)
    const json = Buffer.from(`{"a":[1,12345678901234567890,"${'x'.repeat(300_000)}"]}`)
    const written = join(
      writeJsonParts({
        text: new LargeBytes(bytes, 'text'),
        list: [1, new LargeBytes(bytes, 'base64')],
        json: new LargeBytes(json, 'json'),
        other: 'after',
      }),
    )
    expect(JSON.parse(written)).toEqual({
      text,
      list: [1, bytes.toString('base64')],
      json: JSON.parse(json.toString()),
      other: 'after',
    })
    // As it was stored: parsing would have rounded the number.
    expect(written).toContain('12345678901234567890')
  })

  it('no part is larger than a few hundred kilobytes, however large the payload is', () => {
    const bytes = Buffer.alloc(5_000_000, '"')
    for (const form of ['text', 'base64', 'json'] as const) {
      const sizes = [...writeJsonParts({ value: new LargeBytes(bytes, form) })].map((part) => part.length)
      expect(Math.max(...sizes)).toBeLessThan(256 * 1_024)
      expect(sizes.length).toBeGreaterThan(20)
    }
  })

  it('the event loop handles other events between two parts', async () => {
    const parts = writeJsonParts({ value: new LargeBytes(Buffer.alloc(1_000_000, 'x'), 'text') })
    let turns = 0
    let isDone = false
    const countTurns = (): void => {
      turns++
      if (!isDone) setImmediate(countTurns)
    }
    setImmediate(countTurns)
    let count = 0
    for await (const part of takeTurns(parts)) count += part.length > 10_000 ? 1 : 0
    isDone = true
    expect(count).toBeGreaterThan(9)
    expect(turns).toBeGreaterThanOrEqual(count - 1)
  })
})

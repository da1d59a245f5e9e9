import { describe, expect, it } from 'vitest'
import { aFailure, anItem, anOrigin, noon } from '../../../../test/make.ts'
import { exportLines } from './export-lines.ts'
import { readLetterCursor } from './letters.ts'
import type { LetterBatch } from './read-letters.ts'

const list = 'a list'
const aLetter = (id: string) =>
  anItem({ id, rootId: id, diedAt: noon, origin: anOrigin(), failure: aFailure() })

async function linesOf(...batches: readonly LetterBatch[]): Promise<string> {
  const [first, ...others] = batches
  const rest = (async function* () {
    yield* others
  })()
  const letters = { slugs: async () => () => 'slug', campaigns: {} as never }
  let text = ''
  const { signal } = new AbortController()
  const lines = exportLines({ first, rest, letters }, undefined, { list, by: 'diedAt' }, signal, () => {})
  for await (const piece of lines) text += piece
  return text
}

describe('the lines of an export', () => {
  const at = (id: string) => ({ value: noon, id })

  it('begin with spaces where nothing was found for long, and can each be read as before', async () => {
    const text = await linesOf(
      { letters: [], looked: 1_000, next: at('1') },
      { letters: [], looked: 1_000, next: at('2') },
      { letters: [aLetter('3')], looked: 10, next: at('3') },
      { letters: [], looked: 5, next: null },
    )
    const lines = text.split('\n')
    expect(lines).toHaveLength(3)
    expect(lines[0]).toMatch(/^ {2}\{/)
    const [letter, { end }] = lines.slice(0, 2).map((line) => JSON.parse(line))
    expect([letter.id, end.is_complete, end.looked]).toEqual(['3', true, 2_015])
  })

  it('go on after the last letter that was given when one in the midst cannot be shown', async () => {
    const broken = { ...aLetter('3'), headers: null as never }
    const text = await linesOf(
      { letters: [aLetter('1')], looked: 1, next: at('1') },
      { letters: [aLetter('2'), broken], looked: 2, next: null },
    )
    const [, second, { end }] = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(end).toMatchObject({ is_complete: false, letters: 2, error: { code: 'INTERNAL' } })
    expect(end.next_cursor).toBe(second.cursor)
    expect(readLetterCursor(end.next_cursor, list)).toEqual(at('2'))
  })
})

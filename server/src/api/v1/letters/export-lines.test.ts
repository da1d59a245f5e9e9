import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { aFailure, anItem, anOrigin, noon } from '../../../../test/make.ts'
import type { LetterBatch } from '../../../letters/letters.ts'
import { toStream } from '../../http/wire/json-parts.ts'
import { writeExportLines } from './export-lines.ts'
import { readLetterCursor } from './letter-order.ts'

const list = 'a list'
const createLetter = (id: string) =>
  anItem({ id, rootId: id, deadLetteredAt: noon, origin: anOrigin(), failure: aFailure() })

function exportLines(first: LetterBatch | undefined, batches: AsyncGenerator<LetterBatch>) {
  const letters = { labels: async () => () => ({ slug: 'slug', groupId: 1 }), campaigns: {} as never }
  const source = { batches, first, letters, after: undefined, list, order: 'deadLetteredAt' } as const
  return writeExportLines(source, new AbortController().signal, () => {})
}

async function exportBatches(...all: readonly LetterBatch[]): Promise<string> {
  const [first, ...others] = all
  const batches = (async function* () {
    yield* others
  })()
  let text = ''
  for await (const piece of exportLines(first, batches)) text += piece
  return text
}

describe('the lines of an export', () => {
  const cursor = (id: string) => ({ value: noon, id })

  it('an export sends spaces during a long search, and its lines are still JSON', async () => {
    const text = await exportBatches(
      { letters: [], examinedCount: 1_000, next: cursor('1') },
      { letters: [], examinedCount: 1_000, next: cursor('2') },
      { letters: [createLetter('3')], examinedCount: 10, next: cursor('3') },
      { letters: [], examinedCount: 5, next: null },
    )
    const lines = text.split('\n')
    expect(lines).toHaveLength(3)
    expect(lines[0]).toMatch(/^ {2}\{/)
    const [letter, { end }] = lines.slice(0, 2).map((line) => JSON.parse(line))
    expect([letter.id, end.is_complete, end.examined_count]).toEqual(['3', true, 2_015])
  })

  it('an export that fails continues after the last exported letter', async () => {
    const broken = { ...createLetter('3'), headers: null as never }
    const text = await exportBatches(
      { letters: [createLetter('1')], examinedCount: 1, next: cursor('1') },
      { letters: [createLetter('2'), broken], examinedCount: 2, next: null },
    )
    const [, second, { end }] = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(end).toMatchObject({ is_complete: false, letters: 2, error: { code: 'INTERNAL' } })
    expect(end.next_cursor).toBe(second.cursor)
    expect(readLetterCursor(end.next_cursor, list)).toEqual(cursor('2'))
  })

  it('an export reads no more batches than a client that does not read can buffer', async () => {
    let read = 0
    const batches = (async function* (): AsyncGenerator<LetterBatch> {
      for (;;) {
        const id = String(++read)
        const letter = { ...createLetter(id), payload: Buffer.alloc(50_000, 'x') }
        yield { letters: [letter], examinedCount: 1, next: cursor(id) }
      }
    })()
    const stream = toStream(exportLines((await batches.next()).value, batches))
    await once(stream, 'readable')
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(read).toBeLessThanOrEqual(4)
    stream.destroy()
    await once(stream, 'close')
    const before = read
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(read).toBe(before)
  })
})

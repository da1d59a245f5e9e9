import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../../tools/services/require-service.ts'
import { aFailure, anOrigin, bytes, noon } from '../../../../test/make.ts'
import { run, type TestDatabase, testDatabase } from '../../../../test/postgres.ts'
import type { CountedBy } from '../../contract/letters.ts'
import type { Storage } from '../../contract/storage.ts'

const postgres = await requireService('postgres')
const counted: readonly (readonly CountedBy[])[] = [[], ['slug'], ['queue', 'state'], ['queue', 'retryCount']]

/**
 * One queue with three letters of one slug in two groups and a letter of another slug; one queue with a
 * letter.
 */
async function withLetters(database: TestDatabase): Promise<Storage> {
  const storage = await database.open()
  const messages = { letters: ['timeout: a', 'timeout: b', 'timeout: b', 'refused'], others: ['timeout: a'] }
  for (const [queue, list] of Object.entries(messages)) {
    await run(storage, { op: 'create-queue', queue: { name: queue }, now: noon })
    const items = list.map((message, index) => ({
      ...{ payload: bytes('x'), sourceId: `${index}`, origin: anOrigin() },
      failure: aFailure({ message }),
    }))
    await run(storage, { op: 'import', queue, partition: 0, items, now: noon })
  }
  return storage
}

async function readAllCounts(storage: Storage) {
  const counts = await Promise.all(counted.map((by) => storage.countLetters({ filter: {}, by })))
  return counts.map((list) => list.map((count) => JSON.stringify(count)).sort())
}

describe('sums of the counts of letters', needs(postgres), () => {
  it('totals by slug, queue and state are read from the sums, not from the counts of groups', async () => {
    await using database = await testDatabase()
    const storage = await withLetters(database)
    await database.rows('update redrive.letter_counts set n = 0')
    const bySlug = await storage.countLetters({ filter: {}, by: ['slug'] })
    expect(bySlug.toSorted((a, b) => a.count - b.count)).toEqual([
      { slug: 'refused', count: 1 },
      { slug: 'timeout', count: 4 },
    ])
    const filter = { slugs: ['timeout', ''], states: ['waiting'] } as const
    expect(await storage.countLetters({ filter, by: [] })).toEqual([{ count: 4 }])
    expect(await storage.countLetters({ filter: {}, by: ['queue', 'state'] })).toHaveLength(2)
  })

  it.each([
    ['letter_sums', { queue: 'letters', partition: -1, count: 'letter-sums', counted: 6, actual: 4 }],
    ['slug_sums', { slug: 'refused', count: 'letter-sums', counted: 3, actual: 1 }],
  ])('wrong sums in %s are reported and repaired', async (table, difference) => {
    await using database = await testDatabase()
    const storage = await withLetters(database)
    const before = await readAllCounts(storage)
    const where = table === 'letter_sums' ? 'queue_id = 1' : `slug = 'refused'`
    await database.rows(`update redrive.${table} set n = n + 2 where ${where}`)
    expect(await storage.verify()).toEqual([difference])
    expect(await readAllCounts(storage)).not.toEqual(before)
    expect(await storage.reconcile()).toEqual([difference])
    expect(await storage.verify()).toEqual([])
    expect(await readAllCounts(storage)).toEqual(before)
  })

  it('missing and surplus sums are repaired, even if the counts are wrong too', async () => {
    await using database = await testDatabase()
    const storage = await withLetters(database)
    const before = await readAllCounts(storage)
    await database.rows(`delete from redrive.slug_sums where slug = 'timeout'`)
    await database.rows(`insert into redrive.slug_sums values ('nothing', 0, -9, 7)`)
    await database.rows('delete from redrive.letter_sums')
    await database.rows('update redrive.letter_counts set n = n + 1 where group_id = 1')
    await storage.reconcile()
    expect(await storage.verify()).toEqual([])
    expect(await readAllCounts(storage)).toEqual(before)
  })

  it('the sums are right after a queue is deleted', async () => {
    await using database = await testDatabase()
    const storage = await withLetters(database)
    await run(storage, { op: 'delete-queue', name: 'letters', isForced: true })
    expect(await storage.verify()).toEqual([])
    expect(await storage.countLetters({ filter: {}, by: ['slug'] })).toEqual([{ slug: 'timeout', count: 1 }])
  })
})

import { expect, it } from 'vitest'
import { compareStores } from './compare-stores.ts'

const listed = { file: 'wal.ts', store: 'sqlite', reason: 'only SQLite has one' } as const

it('stores with equal files have no problems', () => {
  expect(compareStores({ sqlite: ['items/lease.ts'], postgres: ['items/lease.ts'] }, [])).toEqual([])
})

it('a file without a counterpart is a problem unless it is listed', () => {
  expect(compareStores({ sqlite: ['wal.ts'], postgres: [] }, [])).toEqual([
    'sqlite/wal.ts has no counterpart in postgres: mirror it, or list it with a reason',
  ])
  expect(compareStores({ sqlite: ['wal.ts'], postgres: [] }, [listed])).toEqual([])
})

it('a listed difference that does not exist or exists in both stores is a problem', () => {
  expect(compareStores({ sqlite: [], postgres: [] }, [listed])).toHaveLength(1)
  expect(compareStores({ sqlite: ['wal.ts'], postgres: ['wal.ts'] }, [listed])).toHaveLength(1)
})

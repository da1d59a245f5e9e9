import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { migrations as ofPostgres } from '../postgres/migrations/migrate.ts'
import { migrations as ofSqlite } from '../sqlite/migrations/migrate.ts'
import { type Migration, migrationSql } from './migrations.ts'

const checksums = (migrations: readonly Migration[]): string[][] =>
  migrations.map((migration) => [
    migration.name,
    createHash('sha256').update(migrationSql(migration)).digest('hex'),
  ])

describe('the migrations of the stores', () => {
  it('both stores have the same numbers and names, without a gap', () => {
    expect(ofPostgres.map(({ name }) => name)).toEqual(ofSqlite.map(({ name }) => name))
    for (const [index, { name }] of ofSqlite.entries()) {
      expect(name).toMatch(new RegExp(`^${String(index + 1).padStart(4, '0')}_[a-z-]+$`))
    }
  })

  // A database that is in use has these. Add a line for each new migration; never change one.
  it('a released migration is never edited', () => {
    expect(checksums(ofSqlite)).toEqual([
      ['0001_foundation', 'ee0148936be62531b3c3db5c0f1eeba126d69c9106f36055e9358e2633d1d214'],
    ])
    expect(checksums(ofPostgres)).toEqual([
      ['0001_foundation', 'fee1b277a7afc2bde76abc7c6e8a231295ac717517819bdad223c32a84032bd5'],
    ])
  })
})

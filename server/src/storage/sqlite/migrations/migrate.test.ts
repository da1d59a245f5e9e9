import { describe, expect, it } from 'vitest'
import type { Migration } from '../../shared/migrations.ts'
import { Database } from '../connection/database.ts'
import { migrate, migrations } from './migrate.ts'

const addColumn: Migration = { name: '9998_add-column', sql: `alter table locks add column note text` }
const noChange: Migration = { name: '9999_other-store', noChange: 'only PostgreSQL needs it' }

describe('migrating a SQLite file', () => {
  it('a database of an earlier version gets the missing migrations and keeps its rows', () => {
    const database = new Database(':memory:')
    migrate(database, 'the file')
    database.run(`insert into locks (name, owner, token) values ('kept', 'a', 7)`)

    migrate(database, 'the file', [...migrations, addColumn, noChange])
    expect(database.all('select name, token, note from locks')).toEqual([
      { name: 'kept', token: 7, note: null },
    ])
    expect(database.readPragma('user_version')).toBe(migrations.length + 2)
    database.close()
  })

  it('a migration is applied once', () => {
    const database = new Database(':memory:')
    const wanted = [...migrations, addColumn]
    migrate(database, 'the file', wanted)
    migrate(database, 'the file', wanted)
    expect(database.readPragma('user_version')).toBe(migrations.length + 1)
    database.close()
  })

  it('a database of a newer version is refused with both versions', () => {
    const database = new Database(':memory:')
    migrate(database, 'the file', [...migrations, addColumn])
    expect(() => migrate(database, 'the file')).toThrow(
      `the file has schema version ${migrations.length + 1}, this program knows versions up to ${migrations.length}`,
    )
    database.close()
  })
})

/** The pages in docs/internals/ describe the code as it is: their files exist, and they list every table. */
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { migrations as postgresMigrations } from '../server/src/storage/postgres/migrations/migrate.ts'
import { getMigrationSql, type Migration } from '../server/src/storage/shared/migrations.ts'
import { migrations as sqliteMigrations } from '../server/src/storage/sqlite/migrations/migrate.ts'
import { repository } from './run-program.ts'

const folder = join(repository, 'docs/internals')
const pages = readdirSync(folder).filter((name) => name.endsWith('.md'))
const readPage = (name: string): string => readFileSync(join(folder, name), 'utf8')

describe('the pages about internals', () => {
  it.each(pages)('every file that %s names exists', (page) => {
    const names = [...readPage(page).matchAll(/`([\w*./-]+\.ts)`/g)].map(([, name]) => name as string)
    expect(names.length).toBeGreaterThan(0)
    expect(names.filter((name) => !isNamed(name))).toEqual([])
  })

  it.each([
    ['SQLite', sqliteMigrations],
    ['PostgreSQL', postgresMigrations],
  ])('tables.md has every table and column of %s', (_, migrations) => {
    const page = readPage('tables.md')
    const missing = readTables(migrations).flatMap(({ table, columns }) =>
      [table, ...columns].filter((name) => !new RegExp(`\\b${name}\\b`).test(page)),
    )
    expect(missing).toEqual([])
  })

  it('every function in the calls of each step exists', () => {
    const [, calls = ''] = readPage('README.md').split(/^### The (?:calls|rows) .*$/m)
    const names = [...calls.matchAll(/(?<=→ )(?:\w+\.)?(\w+)|\b(\w+)(?= →)/g)].map(([, a, b]) => a ?? b)
    const sources = join(repository, 'server/src')
    const code = globSync('**/*.ts', { cwd: sources }).map((path) =>
      readFileSync(join(sources, path), 'utf8'),
    )
    const text = code.join('\n')
    expect(names.length).toBeGreaterThan(20)
    expect(names.filter((name) => !new RegExp(`\\b${name}(?:\\(| =)`).test(text))).toEqual([])
  })

  it('the path of an item has at most 15 files', () => {
    const rows = readPage('README.md').match(/^\| \d+ \|.*$/gm) ?? []
    expect(rows.length).toBeGreaterThan(0)
    expect(rows.length).toBeLessThanOrEqual(15)
  })
})

/**
 * A name is relative to the repository, to server/src, to its storage, or a file name in one of their
 * folders.
 */
function isNamed(name: string): boolean {
  const names = name.startsWith('*/') ? [name.replace('*', 'sqlite'), name.replace('*', 'postgres')] : [name]
  const roots = ['', 'server/src', 'server/src/storage', 'server/src/storage/sqlite/threads']
  const folders = [...roots, 'server/src/storage/postgres/connection', 'server/src/storage/sqlite/items']
  return names.every((each) => folders.some((root) => existsSync(join(repository, root, each))))
}

type Table = Readonly<{ table: string; columns: readonly string[] }>

/**
 * The tables that the migrations create. A line of a table starts with the name of a column or a key word.
 */
function readTables(migrations: readonly Migration[]): Table[] {
  const sql = migrations.map(getMigrationSql).join('\n')
  return [...sql.matchAll(/create table (?:redrive\.)?(\w+)([^;]*);/g)].map(([, table = '', body = '']) => ({
    table,
    columns: [
      ...body.matchAll(/^\s+([a-z_]+) (?:integer|bigint|smallint|text|blob|bytea|boolean|numeric|uuid)\b/gm),
    ].map(([, column = '']) => column),
  }))
}

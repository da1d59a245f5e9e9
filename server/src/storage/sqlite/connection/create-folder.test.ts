import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openSqlite } from '../sqlite-storage.ts'

describe('the folder of a store', () => {
  it('the folder of a store is created, with the folders above it', async () => {
    const top = mkdtempSync(join(tmpdir(), 'redrive-folder-'))
    const path = join(top, 'a', 'b', 'store.db')
    await (await openSqlite({ kind: 'sqlite', path })).close()
    expect(existsSync(path)).toBe(true)
    rmSync(top, { recursive: true })
  })

  it('a folder that cannot be created is reported immediately as STORE_UNWRITABLE', async () => {
    const top = mkdtempSync(join(tmpdir(), 'redrive-folder-'))
    writeFileSync(join(top, 'file'), '')
    const paths = [
      join(top, 'file', 'store.db'),
      '/proc/nowhere/data/store.db',
      `/tmp/${'x'.repeat(300)}/store.db`,
    ]
    for (const path of paths) {
      await expect(openSqlite({ kind: 'sqlite', path })).rejects.toMatchObject({ code: 'STORE_UNWRITABLE' })
    }
    rmSync(top, { recursive: true })
  })
})

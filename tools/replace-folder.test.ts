import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { replaceFolder } from './replace-folder.ts'
import { repository } from './run-program.ts'

let root = ''
let folder = ''
beforeEach(() => {
  // In the repository: a folder can only be moved within one file system.
  root = mkdtempSync(join(repository, 'node_modules', '.redrive-test-'))
  folder = join(root, 'dist')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const make = (name: string) => async (made: string) => {
  writeFileSync(join(made, name), name)
  return true
}

describe('a folder made anew', () => {
  it('has only what was made now', async () => {
    await replaceFolder(folder, make('old'))
    await replaceFolder(folder, make('new'))
    expect(readdirSync(folder)).toEqual(['new'])
  })

  it('stays as it was when the making fails', async () => {
    await replaceFolder(folder, make('old'))
    expect(await replaceFolder(folder, async () => false)).toBe(false)
    await expect(replaceFolder(folder, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(readFileSync(join(folder, 'old'), 'utf8')).toBe('old')
  })

  it('is whole when two are made at once', async () => {
    await Promise.all([replaceFolder(folder, make('a')), replaceFolder(folder, make('b'))])
    expect(readdirSync(folder)).toHaveLength(1)
  })
})

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

const writeFileNamed = (name: string) => async (target: string) => {
  writeFileSync(join(target, name), name)
  return true
}

describe('replaceFolder', () => {
  it('the new folder contains only the new files', async () => {
    await replaceFolder(folder, writeFileNamed('old'))
    await replaceFolder(folder, writeFileNamed('new'))
    expect(readdirSync(folder)).toEqual(['new'])
  })

  it('the old folder stays if filling the new one fails', async () => {
    await replaceFolder(folder, writeFileNamed('old'))
    expect(await replaceFolder(folder, async () => false)).toBe(false)
    await expect(replaceFolder(folder, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(readFileSync(join(folder, 'old'), 'utf8')).toBe('old')
  })

  it('two concurrent replacements leave one complete folder', async () => {
    await Promise.all([
      replaceFolder(folder, writeFileNamed('a')),
      replaceFolder(folder, writeFileNamed('b')),
    ])
    expect(readdirSync(folder)).toHaveLength(1)
  })
})

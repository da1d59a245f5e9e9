import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isStale } from './build-steps.ts'

let root = ''
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'redrive-build-'))
  mkdirSync(join(root, 'src/deep'), { recursive: true })
})
afterEach(() => rmSync(root, { recursive: true }))

const step = { inputs: ['src', 'config.json'], output: 'dist/main.js' }

function write(path: string, second: number): void {
  mkdirSync(join(root, path, '..'), { recursive: true })
  writeFileSync(join(root, path), '')
  setTime(path, second)
}

function setTime(path: string, second: number): void {
  utimesSync(join(root, path), second, second)
}

/** All inputs date from second 10, the build from second 20. */
function buildOnce(): void {
  for (const path of ['config.json', 'src/a.ts', 'src/deep/b.ts']) write(path, 10)
  for (const path of ['src', 'src/deep']) setTime(path, 10)
  write('dist/main.js', 20)
}

describe('isStale', () => {
  it('a step that was never built is stale', () => {
    expect(isStale(step, root)).toBe(true)
  })

  it('a build is current while its inputs are unchanged', () => {
    buildOnce()
    expect(isStale(step, root)).toBe(false)
  })

  it.each(['config.json', 'src/a.ts', 'src/deep/b.ts', 'src/deep'])(
    'a build is stale after %s has changed',
    (path) => {
      buildOnce()
      setTime(path, 30)
      expect(isStale(step, root)).toBe(true)
    },
  )

  it('a build is stale after an input file was removed', () => {
    buildOnce()
    rmSync(join(root, 'src/deep/b.ts'))
    expect(isStale(step, root)).toBe(true)
  })
})

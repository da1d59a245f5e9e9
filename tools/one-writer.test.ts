/**
 * Proves that every write goes through the engine (server/src/engine/writes/writer.ts), which wakes waiting
 * leases, measures and emits events. Other layers get `StoreReads`, a store without `write`; only a few
 * files may name the whole store.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { repository } from './run-program.ts'

const sources = join(repository, 'server/src')
const files = globSync('**/*.ts', { cwd: sources }).filter(
  (path) => !path.startsWith('storage/') && !path.endsWith('.test.ts'),
)
const filesWith = (pattern: RegExp): string[] =>
  files.filter((path) => pattern.test(readFileSync(join(sources, path), 'utf8'))).toSorted()

describe('one writer', () => {
  it('only engine/writes/writer.ts calls storage.write', () => {
    expect(filesWith(/\bstorage(?:\(\))?\.write\(/)).toEqual(['engine/writes/writer.ts'])
  })

  it('only the engine and the code that opens a store name a store with write', () => {
    const named = filesWith(/import type \{[^}]*\bStorage\b[^}]*\} from '[^']*\/contract\/storage\.ts'/)
    expect(named).toEqual(['cli/with-storage.ts', 'engine/create-engine.ts', 'engine/writes/writer.ts'])
  })
})

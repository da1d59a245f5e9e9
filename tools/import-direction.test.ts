/**
 * Proves that the linter really holds every arrow of the design: for each layer, a file that imports
 * one thing from everywhere is linted with the project's own rules, and what is refused is compared.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const repository = fileURLToPath(new URL('..', import.meta.url))

/** What can be imported, by where it stands below server/src. */
const targets = {
  'node:fs': 'node:fs',
  errors: 'errors.ts',
  core: 'core/item.ts',
  contract: 'storage/contract/storage.ts',
  'storage/open': 'storage/open-storage.ts',
  sqlite: 'storage/sqlite/sqlite-storage.ts',
  postgres: 'storage/postgres/postgres-storage.ts',
  engine: 'engine/loop.ts',
  drivers: 'drivers/pull.ts',
  letters: 'letters/capture.ts',
  ops: 'ops/log.ts',
  config: 'config/settings.ts',
  api: 'api/http/route.ts',
  server: 'server.ts',
  cli: 'cli/main.ts',
} as const
type Target = keyof typeof targets
const names = Object.keys(targets) as Target[]

// Its own files are every layer's to import.
const below = ['node:fs', 'errors', 'core', 'contract'] as const
const allowed: Readonly<Record<string, readonly Target[]>> = {
  'core/probe.ts': ['core'],
  'storage/probe.ts': [...below, 'storage/open', 'sqlite', 'postgres'],
  'engine/probe.ts': [...below, 'engine'],
  'drivers/probe.ts': [...below, 'engine', 'drivers'],
  'letters/probe.ts': [...below, 'engine', 'letters'],
  'ops/probe.ts': [...below, 'engine', 'ops'],
  'config/probe.ts': [...below, 'storage/open', 'config'],
  'api/probe.ts': [...below, 'engine', 'drivers', 'letters', 'ops', 'api'],
  'server.ts': names.filter((name) => name !== 'cli'),
  'cli/probe.ts': names.filter((name) => name !== 'sqlite' && name !== 'postgres'),
}

/** An arrow must hold however deep a file lies and whatever form the import has. */
const forms: Readonly<Record<string, (specifier: string, number: number) => string>> = {
  value: (specifier, number) => `import { x as x${number} } from '${specifier}'`,
  type: (specifier, number) => `import type { X as X${number} } from '${specifier}'`,
  reexport: (specifier, number) => `export { x as x${number} } from '${specifier}'`,
  dynamic: (specifier) => `void import('${specifier}')`,
}

type Diagnostic = Readonly<{
  category: string
  location: { path: string; start: { line: number } }
}>

let folder = ''
let diagnostics: readonly Diagnostic[] = []

function probePath(importer: string, form: string, isDeep: boolean): string {
  if (importer === 'server.ts') return importer
  return importer.replace('probe', `${isDeep ? 'deep/er/' : ''}probe-${form}`)
}

function write(path: string, text: string): void {
  const whole = join(folder, path)
  mkdirSync(dirname(whole), { recursive: true })
  writeFileSync(whole, text)
}

function specifierFrom(path: string, target: Target): string {
  const place = targets[target]
  if (place.startsWith('node:')) return place
  const ups = path.split('/').length - 1
  return ups === 0 ? `./${place}` : `${'../'.repeat(ups)}${place}`
}

function lint(): Diagnostic[] {
  const biome = join(repository, 'node_modules/.bin/biome')
  const { stdout, stderr } = spawnSync(biome, ['lint', '--reporter=json', '--max-diagnostics=none', '.'], {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 64 * 1_024 * 1_024,
  })
  const start = stdout.indexOf('{"summary"')
  if (start === -1) throw new Error(`no report from Biome: ${stdout}${stderr}`)
  return JSON.parse(stdout.slice(start)).diagnostics
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-imports-'))
  const config = JSON.parse(readFileSync(join(repository, 'biome.json'), 'utf8'))
  write('biome.json', JSON.stringify({ ...config, $schema: undefined, root: true, vcs: { enabled: false } }))
  for (const importer of Object.keys(allowed)) {
    for (const [form, line] of Object.entries(forms)) {
      for (const isDeep of [false, true]) {
        const path = probePath(importer, form, isDeep)
        write(
          `server/src/${path}`,
          `${names.map((name, number) => line(specifierFrom(path, name), number)).join('\n')}\n`,
        )
      }
    }
  }
  write('server/src/core/probe.test.ts', `import 'node:fs'\nimport '../engine/loop.ts'\n`)
  write(
    'client/src/probe.ts',
    `import 'node:fs'\nimport '../../server/src/core/item.ts'\nimport './wire.ts'\n`,
  )
  write('dashboard/src/probe.ts', `import '@redrive/server'\nimport '@redrive/client'\nimport 'react'\n`)
  write('server/src/engine/ring-a.ts', `import { b } from './ring-b.ts'\nexport const a = () => b\n`)
  write('server/src/engine/ring-b.ts', `import { a } from './ring-a.ts'\nexport const b = () => a\n`)
  diagnostics = lint()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function linesOf(path: string, category: string): number[] {
  return diagnostics
    .filter((found) => found.category === category && found.location.path === path)
    .map((found) => found.location.start.line)
    .toSorted((a, b) => a - b)
}

describe('the direction of imports', () => {
  describe.each(Object.keys(allowed))('of %s', (importer) => {
    it.each(Object.keys(forms))('is held by lint for every import by %s', (form) => {
      for (const isDeep of importer === 'server.ts' ? [false] : [false, true]) {
        const refused = linesOf(
          `server/src/${probePath(importer, form, isDeep)}`,
          'lint/style/noRestrictedImports',
        )
        const passed = names.filter((_, index) => !refused.includes(index + 1))
        expect(passed.toSorted()).toEqual(allowed[importer]?.toSorted())
      }
    })
  })

  it('leaves tests free to import what they test with', () => {
    expect(linesOf('server/src/core/probe.test.ts', 'lint/style/noRestrictedImports')).toEqual([])
  })

  it('keeps the client free of Node and of the server', () => {
    expect(linesOf('client/src/probe.ts', 'lint/style/noRestrictedImports')).toEqual([1, 2])
  })

  it('keeps the dashboard an ordinary client', () => {
    expect(linesOf('dashboard/src/probe.ts', 'lint/style/noRestrictedImports')).toEqual([1])
  })

  it('has no cycles', () => {
    for (const file of ['ring-a', 'ring-b']) {
      expect(linesOf(`server/src/engine/${file}.ts`, 'lint/suspicious/noImportCycles')).toEqual([1])
    }
  })
})

/**
 * Proves that the linter enforces the import direction of the design. For each layer, a file that imports
 * from every other layer is linted with the project's own rules, and the rejected imports are compared.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const repository = fileURLToPath(new URL('..', import.meta.url))

/** One file of each layer, as a path below server/src. */
const targets = {
  'node:fs': 'node:fs',
  errors: 'errors.ts',
  core: 'core/items/item.ts',
  contract: 'storage/contract/storage.ts',
  'storage/open': 'storage/open-storage.ts',
  sqlite: 'storage/sqlite/sqlite-storage.ts',
  postgres: 'storage/postgres/postgres-storage.ts',
  engine: 'engine/loop.ts',
  drivers: 'drivers/pull.ts',
  letters: 'letters/capture.ts',
  ops: 'ops/log/log.ts',
  access: 'access/access.ts',
  config: 'config/settings/settings.ts',
  api: 'api/http/route.ts',
  server: 'server.ts',
  cli: 'cli/main.ts',
} as const
type Target = keyof typeof targets
const names = Object.keys(targets) as Target[]

// Every layer may import its own files.
const below = ['node:fs', 'errors', 'core', 'contract'] as const
const allowed: Readonly<Record<string, readonly Target[]>> = {
  'core/probe.ts': ['core'],
  'storage/probe.ts': [...below, 'storage/open', 'sqlite', 'postgres'],
  'engine/probe.ts': [...below, 'engine'],
  'drivers/probe.ts': [...below, 'engine', 'drivers'],
  'letters/probe.ts': [...below, 'engine', 'letters'],
  'ops/probe.ts': [...below, 'engine', 'ops'],
  'access/probe.ts': [...below, 'engine', 'access'],
  'config/probe.ts': [...below, 'storage/open', 'config'],
  'api/probe.ts': [...below, 'engine', 'drivers', 'letters', 'ops', 'access', 'api'],
  'server.ts': names.filter((name) => name !== 'cli'),
  'cli/probe.ts': names.filter((name) => name !== 'sqlite' && name !== 'postgres'),
}

/** The direction must be enforced for every form of import, and for files in sub-folders. */
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
  const fullPath = join(folder, path)
  mkdirSync(dirname(fullPath), { recursive: true })
  writeFileSync(fullPath, text)
}

function buildSpecifier(path: string, target: Target): string {
  const targetPath = targets[target]
  if (targetPath.startsWith('node:')) return targetPath
  const depth = path.split('/').length - 1
  return depth === 0 ? `./${targetPath}` : `${'../'.repeat(depth)}${targetPath}`
}

function lint(): Diagnostic[] {
  const biome = join(repository, 'node_modules/.bin/biome')
  const { stdout, stderr } = spawnSync(biome, ['lint', '--reporter=json', '--max-diagnostics=none', '.'], {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 64 * 1_024 * 1_024,
  })
  const start = stdout.indexOf('{"summary"')
  if (start === -1) throw new Error(`Biome wrote no report: ${stdout}${stderr}`)
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
          `${names.map((name, number) => line(buildSpecifier(path, name), number)).join('\n')}\n`,
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

function findLines(path: string, category: string): number[] {
  return diagnostics
    .filter((found) => found.category === category && found.location.path === path)
    .map((found) => found.location.start.line)
    .toSorted((a, b) => a - b)
}

describe('the direction of imports', () => {
  describe.each(Object.keys(allowed))('of %s', (importer) => {
    it.each(Object.keys(forms))('lint rejects every forbidden import of the form %s', (form) => {
      for (const isDeep of importer === 'server.ts' ? [false] : [false, true]) {
        const refused = findLines(
          `server/src/${probePath(importer, form, isDeep)}`,
          'lint/style/noRestrictedImports',
        )
        const passed = names.filter((_, index) => !refused.includes(index + 1))
        expect(passed.toSorted()).toEqual(allowed[importer]?.toSorted())
      }
    })
  })

  it('test files may import from every layer', () => {
    expect(findLines('server/src/core/probe.test.ts', 'lint/style/noRestrictedImports')).toEqual([])
  })

  it('the client may not import Node modules or the server', () => {
    expect(findLines('client/src/probe.ts', 'lint/style/noRestrictedImports')).toEqual([1, 2])
  })

  it('the dashboard may import the client, but not the server', () => {
    expect(findLines('dashboard/src/probe.ts', 'lint/style/noRestrictedImports')).toEqual([1])
  })

  it('lint rejects import cycles', () => {
    for (const file of ['ring-a', 'ring-b']) {
      expect(findLines(`server/src/engine/${file}.ts`, 'lint/suspicious/noImportCycles')).toEqual([1])
    }
  })
})

/**
 * Generates TypeScript from server/proto. With --check it only verifies that the files in the repository are
 * current. Needs no network: `npm ci` installs both programs.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { repository, runProgram } from './run-program.ts'

const generated = join(repository, 'server/src/api/queue/generated')

function buildTemplate(out: string): string {
  const plugin = {
    local: join(repository, 'node_modules/.bin/protoc-gen-es'),
    out,
    opt: ['target=ts', 'import_extension=ts'],
  }
  return JSON.stringify({ version: 'v2', plugins: [plugin] })
}

async function generateInto(folder: string): Promise<boolean> {
  return (await runProgram('buf', ['generate', 'server/proto', '--template', buildTemplate(folder)])) === 0
}

/** Names and texts of all files below a folder, in a comparable form. */
function readTexts(folder: string): string {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  )
  return JSON.stringify(names.toSorted().map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

async function check(): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-proto-'))
  try {
    if (!(await generateInto(folder))) return false
    if (readTexts(folder) === readTexts(generated)) return true
    console.error('server/proto has changed since its code was generated. Run: node tools/generate-proto.ts')
    return false
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const isDone = process.argv.includes('--check') ? await check() : await generateInto(generated)
if (!isDone) process.exitCode = 1

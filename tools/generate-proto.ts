/**
 * Makes TypeScript of server/proto. With --check it only says whether what is in the repository is what
 * would be made. Needs no network: both programs come with `npm ci`.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { repository, runProgram } from './run-program.ts'

const generated = join(repository, 'server/src/api/queue/generated')

function template(out: string): string {
  const plugin = {
    local: join(repository, 'node_modules/.bin/protoc-gen-es'),
    out,
    opt: ['target=ts', 'import_extension=ts'],
  }
  return JSON.stringify({ version: 'v2', plugins: [plugin] })
}

async function generateInto(folder: string): Promise<boolean> {
  return (await runProgram('buf', ['generate', 'server/proto', '--template', template(folder)])) === 0
}

/** Every file below a folder, with its text. */
function textsIn(folder: string): string {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  )
  return JSON.stringify(names.toSorted().map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

async function check(): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-proto-'))
  try {
    if (!(await generateInto(folder))) return false
    if (textsIn(folder) === textsIn(generated)) return true
    console.error('server/proto has changed since its code was made. Run: node tools/generate-proto.ts')
    return false
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const isDone = process.argv.includes('--check') ? await check() : await generateInto(generated)
if (!isDone) process.exitCode = 1

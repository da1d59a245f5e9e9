import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const repository = fileURLToPath(new URL('..', import.meta.url))

/** Runs a program that `npm ci` installed, with the output of this process. Resolves with its exit code. */
export async function runProgram(name: string, args: readonly string[], folder = '.'): Promise<number> {
  const program = join(repository, folder, 'node_modules/.bin', name)
  return run(program, args, join(repository, folder))
}

/** Runs a program of `tools/`. */
export async function runTool(path: string, args: readonly string[] = []): Promise<number> {
  return run(process.execPath, [join(repository, path), ...args], repository)
}

async function run(program: string, args: readonly string[], cwd: string): Promise<number> {
  const child = spawn(program, args, { cwd, stdio: 'inherit' })
  const [code] = (await once(child, 'exit')) as [number | null]
  return code ?? 1
}

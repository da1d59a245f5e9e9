import { spawn } from 'node:child_process'
import { stripVTControlCharacters } from 'node:util'

export type CommandOptions = Readonly<{
  cwd?: string
  env?: NodeJS.ProcessEnv
  uid?: number
  gid?: number
  msMax?: number
}>

/** Runs a program and returns its standard output. Throws with its last lines of output if it fails. */
export async function runCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<string> {
  const { msMax = 600_000, ...spawnOptions } = options
  const child = spawn(command, args, {
    ...spawnOptions,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  // Not spawn's own `timeout`: if the program does not exist, that timer keeps running and delays the exit.
  const timer = setTimeout(() => child.kill('SIGKILL'), msMax)
  const stdout: Buffer[] = []
  const all: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => {
    stdout.push(chunk)
    all.push(chunk)
  })
  child.stderr.on('data', (chunk: Buffer) => all.push(chunk))

  const ending = await new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(code === 0 ? '' : `ended with ${signal ?? code}`))
  })
  clearTimeout(timer)
  if (ending === '') return Buffer.concat(stdout).toString('utf8')
  throw new Error(`${command} ${ending}${formatLastLines(Buffer.concat(all).toString('utf8'))}`)
}

/** Formats the last lines of a program's output, to be appended to an error message. */
export function formatLastLines(output: string): string {
  const lines = stripVTControlCharacters(output).trimEnd().split('\n').slice(-12)
  return lines.join('').trim() === '' ? '' : `:\n    ${lines.join('\n    ')}`
}

import { readdirSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFolder } from './replace-folder.ts'
import { repository, runProgram } from './run-program.ts'

export type BuildStep = Readonly<{
  name: string
  /** Files and folders that the output is built from. */
  inputs: readonly string[]
  /** A file that every build writes: its age is the age of the build. */
  output: string
  /** Resolves with false if the build failed. */
  build: () => Promise<boolean>
}>

const shared = ['tsconfig.base.json', 'package-lock.json']

export const buildSteps: readonly BuildStep[] = [
  createTypescriptStep('client', 'index.js'),
  createTypescriptStep('server', 'cli/main.js'),
  {
    name: 'dashboard',
    inputs: [...shared, 'dashboard/src', 'dashboard/index.html', 'dashboard/vite.config.ts', 'client/src'],
    output: 'server/public/index.html',
    build: () =>
      replaceFolder(join(repository, 'server/public'), async (folder) => {
        const args = ['build', '--logLevel', 'warn', '--outDir', folder]
        return (await runProgram('vite', args, 'dashboard')) === 0
      }),
  },
]

/** Runs the steps in parallel. Resolves with false if one failed. */
export async function build(steps: readonly BuildStep[]): Promise<boolean> {
  const outcomes = await Promise.all(steps.map((step) => step.build()))
  return outcomes.every((isBuilt) => isBuilt)
}

/** True if the step was never built, or an input has changed since the build. */
export function isStale(
  { inputs, output }: Pick<BuildStep, 'inputs' | 'output'>,
  root = repository,
): boolean {
  const built = readStats(join(root, output))
  if (built === undefined) return true
  return inputs.some((input) => findNewestMs(join(root, input)) > built.mtimeMs)
}

function createTypescriptStep(name: 'client' | 'server', main: string): BuildStep {
  return {
    name,
    inputs: [...shared, `${name}/src`, `${name}/package.json`, `${name}/tsconfig.build.json`],
    output: `${name}/dist/${main}`,
    build: () =>
      replaceFolder(join(repository, name, 'dist'), async (folder) => {
        const args = ['-p', `${name}/tsconfig.build.json`, '--noEmitOnError', '--outDir', folder]
        return (await runProgram('tsc', args)) === 0
      }),
  }
}

/**
 * For a folder: the newest time of the folder and everything in it. Removing a file changes the folder's
 * time.
 */
function findNewestMs(path: string): number {
  const found = readStats(path)
  if (found === undefined) return 0
  if (!found.isDirectory()) return found.mtimeMs
  return readdirSync(path).reduce(
    (newest, name) => Math.max(newest, findNewestMs(join(path, name))),
    found.mtimeMs,
  )
}

function readStats(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false })
}

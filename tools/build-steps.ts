import { readdirSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFolder } from './replace-folder.ts'
import { repository, runProgram } from './run-program.ts'

export type BuildStep = Readonly<{
  name: string
  /** Files and folders that it is made from. */
  inputs: readonly string[]
  /** Written by every build: its age is the age of the build. */
  output: string
  /** False when it failed. */
  build: () => Promise<boolean>
}>

const shared = ['tsconfig.base.json', 'package-lock.json']

export const buildSteps: readonly BuildStep[] = [
  typescriptStep('client', 'index.js'),
  typescriptStep('server', 'cli/main.js'),
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

/** Builds them side by side. False when one failed. */
export async function build(steps: readonly BuildStep[]): Promise<boolean> {
  const outcomes = await Promise.all(steps.map((step) => step.build()))
  return outcomes.every((isBuilt) => isBuilt)
}

/** Never built, or something it is made from has changed since. */
export function isStale(
  { inputs, output }: Pick<BuildStep, 'inputs' | 'output'>,
  root = repository,
): boolean {
  const built = statOf(join(root, output))
  if (built === undefined) return true
  return inputs.some((input) => newestMs(join(root, input)) > built.mtimeMs)
}

function typescriptStep(name: 'client' | 'server', main: string): BuildStep {
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

/** Of a folder: the newest in it. Its own time counts too, since it changes when a file in it goes away. */
function newestMs(path: string): number {
  const found = statOf(path)
  if (found === undefined) return 0
  if (!found.isDirectory()) return found.mtimeMs
  return readdirSync(path).reduce(
    (newest, name) => Math.max(newest, newestMs(join(path, name))),
    found.mtimeMs,
  )
}

function statOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false })
}

/** `npm run check`: all checks that do not run the code. A failed check does not stop the ones after it. */
import { runProgram, runTool } from './run-program.ts'

type Check = Readonly<{ name: string; run: () => Promise<number> }>

const checks: readonly Check[] = [
  { name: 'format, lint and import direction', run: () => runProgram('biome', ['ci', '.']) },
  { name: 'types', run: () => runProgram('tsc', ['--noEmit', '-p', 'tsconfig.json']) },
  {
    name: 'types of the client',
    run: () => runProgram('tsc', ['--noEmit', '-p', 'client/tsconfig.build.json']),
  },
  {
    name: 'types of the dashboard',
    run: () => runProgram('tsc', ['--noEmit', '-p', 'dashboard/tsconfig.json']),
  },
  { name: 'prose', run: () => runTool('tools/check-prose.ts') },
  { name: 'equal files in both stores', run: () => runTool('tools/check-mirror.ts') },
  { name: 'files made from the code', run: () => runTool('tools/approve-surface.ts', ['--check']) },
  { name: 'code made from server/proto', run: () => runTool('tools/generate-proto.ts', ['--check']) },
]

const failed: string[] = []
for (const { name, run } of checks) {
  console.log(`\n── ${name}`)
  if ((await run()) !== 0) failed.push(name)
}
if (failed.length > 0) {
  console.error(`\nfailed: ${failed.join(', ')}`)
  process.exitCode = 1
} else {
  console.log('\nall checks passed')
}

import { run } from './run.ts'

const exitCode = await run(process.argv.slice(2), {
  environment: process.env,
  folder: process.cwd(),
  print: (line) => process.stdout.write(`${line}\n`),
  tell: (line) => process.stderr.write(`${line}\n`),
})
// Not left to the event loop: a connection that some library keeps idle must not hold up the end.
process.exit(exitCode)

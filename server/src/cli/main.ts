import { run } from './run.ts'

// Whoever read what we say may be gone (`redrive settings | head -1`): no reason to end in the middle of something.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

const exitCode = await run(process.argv.slice(2), {
  environment: process.env,
  folder: process.cwd(),
  print: (line) => process.stdout.write(`${line}\n`),
  tell: (line) => process.stderr.write(`${line}\n`),
})
// Not left to the event loop: a connection that some library keeps idle must not hold up the end.
process.exit(exitCode)

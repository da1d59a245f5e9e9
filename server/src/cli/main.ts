import { run } from './run.ts'

// The reader of the output may have ended (`redrive settings | head -1`): that must not end the command.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

const exitCode = await run(process.argv.slice(2), {
  environment: process.env,
  folder: process.cwd(),
  print: (line) => process.stdout.write(`${line}\n`),
  report: (line) => process.stderr.write(`${line}\n`),
})
// Exit explicitly: an idle connection of a library would keep the event loop alive.
process.exit(exitCode)

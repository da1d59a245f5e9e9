/** `npm start`: builds what is missing or older than its sources, then is the server itself. */
import { build, buildSteps, isStale } from './build-steps.ts'

const steps = buildSteps.filter((step) => isStale(step))
if (steps.length > 0) console.error(`building ${steps.map((step) => step.name).join(', ')}`)
if (!(await build(steps))) {
  console.error('The build failed, so the server was not started.')
  process.exit(1)
}

// npm passes Ctrl-C on, but not the signal of `kill`: it just ends. Then the server is to end as well.
const npm = process.ppid
setInterval(() => {
  if (process.ppid !== npm) process.kill(process.pid, 'SIGTERM')
}, 500).unref()

// In this process and not in one below it: signals arrive, and the exit code is the server's own.
process.argv.splice(2, 0, 'serve')
await import(new URL('../server/bin/redrive.js', import.meta.url).href)

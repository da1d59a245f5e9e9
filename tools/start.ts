/** `npm start`: builds missing or outdated parts, then runs the server in this process. */
import { build, buildSteps, isStale } from './build-steps.ts'

const steps = buildSteps.filter((step) => isStale(step))
if (steps.length > 0) console.error(`building ${steps.map((step) => step.name).join(', ')}`)
if (!(await build(steps))) {
  console.error('The build failed, so the server was not started.')
  process.exit(1)
}

// npm forwards Ctrl-C, but not SIGTERM: npm ends without a signal to its child. Stop the server in that case
// too.
const npm = process.ppid
setInterval(() => {
  if (process.ppid !== npm) process.kill(process.pid, 'SIGTERM')
}, 500).unref()

// Run the server in this process, not in a child: it gets the signals, and its exit code is the exit code
// here.
process.argv.splice(2, 0, 'serve')
await import(new URL('../server/bin/redrive.js', import.meta.url).href)

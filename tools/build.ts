/** Builds client, server and dashboard. With --if-needed it builds only missing or outdated parts. */
import { build, buildSteps, isStale } from './build-steps.ts'

const isIfNeeded = process.argv.includes('--if-needed')
const steps = isIfNeeded ? buildSteps.filter((step) => isStale(step)) : buildSteps
if (steps.length > 0) console.error(`building ${steps.map((step) => step.name).join(', ')}`)
if (!(await build(steps))) process.exitCode = 1

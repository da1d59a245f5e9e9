/** fast-check with the seeds of random-test.ts. Tests import it from here. */
// biome-ignore lint/style/noRestrictedImports: this is the one place that configures it
import fc from 'fast-check'
import { reproduceHint, testSeed } from './random-test.ts'

function report(details: fc.RunDetails<unknown>): void {
  if (!details.failed) return
  const message = `${fc.defaultReportMessage(details)}\n${reproduceHint(details.seed)}`
  throw new Error(message, { cause: details.errorInstance })
}

fc.configureGlobal({ seed: testSeed(), reporter: report })

export default fc

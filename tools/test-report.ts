import type { Reporter, TestCase, TestModule, TestRunEndReason, TestSuite, Vitest } from 'vitest/node'
import { deskVariable, sourceAtDesk } from './services/desk.ts'
import type { MissingService } from './services/require-service.ts'
import { failsForMissing, type RunSummary, reportLines, type SkippedTest } from './test-report-lines.ts'

/**
 * The closing summary of a test run: the services it used, each test that was skipped and why, and
 * as its last line the counts. With `CI=true`, a test skipped for want of a service fails the run.
 */
export default class TestReport implements Reporter {
  #isWatching = false

  onInit(vitest: Vitest): void {
    this.#isWatching = vitest.config.watch
  }

  async onTestRunEnd(
    modules: readonly TestModule[],
    errors: readonly unknown[],
    reason: TestRunEndReason,
  ): Promise<void> {
    const desk = process.env[deskVariable]
    const summary = {
      ...summarize(modules, errors.length),
      isInterrupted: reason === 'interrupted',
      isCi: process.env.CI === 'true',
      services: desk === undefined ? [] : await sourceAtDesk(desk).records(),
    }
    if (failsForMissing(summary)) process.exitCode = 1
    const print = (): void => void process.stdout.write(reportLines(summary).join('\n'))
    // Other reporters end at their own pace, and the services are still to be stopped. Only at the
    // exit is it certain that no one prints after us.
    if (this.#isWatching) print()
    else process.once('exit', print)
  }
}

function summarize(
  modules: readonly TestModule[],
  errors: number,
): Pick<RunSummary, 'passed' | 'failed' | 'skipped'> {
  let passed = 0
  let failed = errors
  const skipped: SkippedTest[] = []
  for (const module of modules) {
    // A file that does not load, or a hook that throws, has no failed test to show for it.
    failed += module.errors().length > 0 ? 1 : 0
    for (const suite of module.children.allSuites()) failed += suite.errors().length > 0 ? 1 : 0
    for (const test of module.children.allTests()) {
      const result = test.result()
      if (result.state === 'passed') passed++
      else if (result.state === 'failed') failed++
      else skipped.push(skippedTest(test, result.state === 'skipped' ? result.note : undefined))
    }
  }
  return { passed, failed, skipped }
}

function skippedTest(test: TestCase, note: string | undefined): SkippedTest {
  const name = `${test.module.relativeModuleId} > ${test.fullName}`
  return { name, note, missing: missingFor(test) }
}

/** `needs` may stand on the test itself or on any suite around it. */
function missingFor(task: TestCase | TestSuite | TestModule): readonly MissingService[] {
  const own = task.meta().missingServices ?? []
  if (own.length > 0 || task.type === 'module') return own
  return missingFor(task.parent)
}

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

type Counts = Pick<RunSummary, 'passed' | 'failed' | 'skipped'>

function summarize(modules: readonly TestModule[], errors: number): Counts {
  const counts = modules.map(countModule)
  return {
    passed: sum(counts.map(({ passed }) => passed)),
    failed: errors + sum(counts.map(({ failed }) => failed)),
    skipped: counts.flatMap(({ skipped }) => skipped),
  }
}

function countModule(module: TestModule): Counts {
  const tests = [...module.children.allTests()]
  const inState = (state: 'passed' | 'failed'): number =>
    tests.filter((test) => test.result().state === state).length
  // A file that does not load and a hook that throws have no failed test: count each of them as one.
  const broken = [module, ...module.children.allSuites()].filter((part) => part.errors().length > 0)
  return {
    passed: inState('passed'),
    failed: inState('failed') + broken.length,
    skipped: tests.flatMap(toSkipped),
  }
}

function toSkipped(test: TestCase): SkippedTest[] {
  const result = test.result()
  if (result.state === 'passed' || result.state === 'failed') return []
  return [skippedTest(test, result.state === 'skipped' ? result.note : undefined)]
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

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

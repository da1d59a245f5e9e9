import type { Reporter, TestCase, TestModule, TestRunEndReason, TestSuite, Vitest } from 'vitest/node'
import { connectToRegistry, registryUrlVariable } from './services/registry-server.ts'
import type { MissingService } from './services/require-service.ts'
import {
  buildReportLines,
  isFailedByMissingService,
  type RunSummary,
  type SkippedTest,
} from './test-report-lines.ts'

/**
 * The closing summary of a test run: the services that it used, each skipped test with the reason, and the
 * counts in the last line. With `CI=true`, the run fails if a test was skipped because a service is missing.
 */
export default class TestReport implements Reporter {
  #isWatching = false
  readonly #isQuick: boolean

  constructor(options: Readonly<{ isQuick?: boolean }> = {}) {
    this.#isQuick = options.isQuick ?? false
  }

  onInit(vitest: Vitest): void {
    this.#isWatching = vitest.config.watch
  }

  async onTestRunEnd(
    modules: readonly TestModule[],
    errors: readonly unknown[],
    reason: TestRunEndReason,
  ): Promise<void> {
    const registryUrl = process.env[registryUrlVariable]
    const summary = {
      ...summarize(modules, errors.length),
      isQuick: this.#isQuick,
      isInterrupted: reason === 'interrupted',
      isCi: process.env.CI === 'true',
      services: registryUrl === undefined ? [] : await connectToRegistry(registryUrl).records(),
    }
    if (isFailedByMissingService(summary)) process.exitCode = 1
    const print = (): void => void process.stdout.write(buildReportLines(summary).join('\n'))
    // Other reporters and the stopping services may still print. The summary must be last, so print it at
    // exit.
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
  return [describeSkipped(test, result.state === 'skipped' ? result.note : undefined)]
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

function describeSkipped(test: TestCase, note: string | undefined): SkippedTest {
  const name = `${test.module.relativeModuleId} > ${test.fullName}`
  return { name, note, missing: findMissing(test) }
}

/** `needs` can be an option of the test, or of any suite around it. */
function findMissing(task: TestCase | TestSuite | TestModule): readonly MissingService[] {
  const own = task.meta().missingServices ?? []
  if (own.length > 0 || task.type === 'module') return own
  return findMissing(task.parent)
}

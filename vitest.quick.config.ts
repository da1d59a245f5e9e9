/**
 * `npm run test:quick`: unit tests, SQLite and HTTP in under a minute. It needs no services and leaves out
 * the suites that start processes, kill them, wait for several clients, fill disks, or send many megabytes or
 * many random requests.
 */
import { defineConfig } from 'vitest/config'
import base from './vitest.config.ts'

for (const service of ['POSTGRES', 'KAFKA', 'REDIS', 'CHROMIUM']) {
  process.env[`REDRIVE_TEST_${service}`] = 'none'
}
process.env.REDRIVE_TEST_QUICK = 'true'
process.env.REDRIVE_TEST_SEEDS ??= '3'

const slow = [
  'server/src/cli/redrive-command.test.ts',
  'server/test/conformance/durability/**',
  'server/test/**/*-killed.test.ts',
  'server/test/conformance/concurrency/{concurrent-callers,two-servers-*}.test.ts',
  'server/test/dlq-api/odd-requests.test.ts',
  'server/test/engine/history.test.ts',
  'server/test/journeys/**',
  'server/test/labelled-failures/**',
  'server/test/letters-api/{export,large-requests,odd-requests}.test.ts',
  'server/test/letters/large.test.ts',
  'server/test/queue-api/fuzz.test.ts',
  'server/test/vault/**',
  'server/test/webhook-push/{dispatch,random-counts}.test.ts',
  'tools/services/**',
  'tools/start.test.ts',
]

export default defineConfig({
  test: {
    ...base.test,
    exclude: [...(base.test?.exclude ?? []), ...slow],
    // Most files take less time than the start of a worker.
    isolate: false,
    reporters: ['dot', ['./tools/test-report.ts', { isQuick: true }]],
  },
})

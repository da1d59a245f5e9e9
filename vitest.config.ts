import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['{client,server,dashboard,tools,test}/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**'],
    globalSetup: ['tools/services/global-setup.ts'],
    reporters: ['default', './tools/test-report.ts'],
    // Most tests wait for a database or a server: two files at a time keep two cores busy.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // The default of one second fails on a busy machine.
    expect: { poll: { timeout: 15_000 } },
  },
})

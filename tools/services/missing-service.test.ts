import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, it } from 'vitest'

const skippedName = 'needs-redis.case.ts > tests that need Redis > a test does not run without its service'

describe.concurrent('a run whose service is missing', () => {
  it('the run skips the tests that need the service, lists them with the reason, and succeeds', async ({
    expect,
  }) => {
    const { exitCode, output } = await runFixture({ REDRIVE_TEST_REDIS: 'none' })
    expect(output).toContain(
      `redis: NOT AVAILABLE: REDRIVE_TEST_REDIS is "none"\n    skipped: ${skippedName}`,
    )
    expect(output).toContain(
      'needs-redis.case.ts > a skipped test is listed with its note: waits for a decision',
    )
    expect(lastLine(output)).toBe('1 passed, 0 failed, 2 skipped')
    expect(exitCode).toBe(0)
  })

  it('with CI=true the run fails and reports the missing service as the reason', async ({ expect }) => {
    const { exitCode, output } = await runFixture({ REDRIVE_TEST_REDIS: 'none', CI: 'true' })
    expect(output).toContain('FAILED because CI=true and a service is missing')
    expect(lastLine(output)).toBe('1 passed, 0 failed, 2 skipped')
    expect(exitCode).toBe(1)
  })

  it('a configured service that does not answer fails the run, and no other is started', async ({
    expect,
  }) => {
    const { exitCode, output } = await runFixture({ REDRIVE_TEST_REDIS: 'redis://127.0.0.1:1' })
    expect(output).toContain('redis: NOT AVAILABLE: REDRIVE_TEST_REDIS does not answer')
    expect(lastLine(output)).toBe('0 passed, 1 failed, 0 skipped')
    expect(exitCode).toBe(1)
  })
})

async function runFixture(
  variables: NodeJS.ProcessEnv,
): Promise<{ exitCode: number | null; output: string }> {
  const folder = join(import.meta.dirname, 'fixtures')
  const vitest = join(import.meta.dirname, '../../node_modules/vitest/vitest.mjs')
  const { CI: _, ...environment } = process.env
  const child = spawn(process.execPath, [vitest, 'run', '--config', join(folder, 'vitest.config.ts')], {
    cwd: folder,
    env: { ...environment, NO_COLOR: '1', ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const exitCode = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { exitCode, output }
}

function lastLine(output: string): string | undefined {
  return output.trimEnd().split('\n').at(-1)
}

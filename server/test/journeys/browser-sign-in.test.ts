import { type Browser, chromium as launcher } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { build, buildSteps, isStale } from '../../../tools/build-steps.ts'
import { chromiumLaunchArgs } from '../../../tools/services/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { startServer } from '../../src/server.ts'
import { createReadableLog, testSettings } from '../http/test-server.ts'

const chromium = await requireService('chromium')

describe('signing in with a browser', needs(chromium), () => {
  let browser: Browser
  beforeAll(async () => {
    const steps = buildSteps.filter((step) => step.name === 'dashboard' && isStale(step))
    expect(await build(steps)).toBe(true)
    browser = await launcher.launch({
      executablePath: chromium.executablePath,
      args: [...chromiumLaunchArgs()],
    })
  }, 120_000)
  afterAll(() => browser?.close())

  it('a person signs in with a key, sees the status page, and signs out', async () => {
    let key = ''
    const server = await startServer({
      settings: testSettings({ access: 'keys' }),
      store: { kind: 'memory' },
      log: createReadableLog().log,
      onFirstKey: (created) => {
        key = created
      },
    })
    try {
      const context = await browser.newContext()
      const page = await context.newPage()
      const problems: string[] = []
      page.on('pageerror', (error) => problems.push(String(error)))
      const response = await page.goto(server.url)
      expect(response?.headers()['content-security-policy']).toContain("frame-ancestors 'none'")
      expect(response?.headers()['x-content-type-options']).toBe('nosniff')

      await page.getByLabel('API key').fill('qtr-live-wrong')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('alert').getByText('You could not sign in').waitFor()
      const shots = process.env.REDRIVE_TEST_SCREENSHOTS
      if (shots !== undefined) await page.screenshot({ path: `${shots}/sign-in.png` })

      await page.getByLabel('API key').fill(key)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('status').getByText('The server is up.').waitFor()
      await page.getByText('Signed in as admin').waitFor()
      if (shots !== undefined) await page.screenshot({ path: `${shots}/signed-in.png` })
      const [cookie] = await context.cookies()
      expect(cookie).toMatchObject({ name: 'redrive_session', httpOnly: true, sameSite: 'Strict' })
      expect(await page.evaluate('document.cookie')).toBe('')
      expect(await page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage })')).toBe('{}')

      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByLabel('API key').waitFor()
      expect(await context.cookies()).toEqual([])
      expect(problems).toEqual([])
      await context.close()
    } finally {
      await server.stop(0)
    }
  })
})

import { type Browser, chromium as launcher, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { build, buildSteps, isStale } from '../../../tools/build-steps.ts'
import { chromiumLaunchArgs } from '../../../tools/services/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { version } from '../../src/version.ts'
import { startTestApi } from '../http/test-api.ts'
import { startTestServer } from '../http/test-server.ts'

type Colours = { ink: string; faint: string; ground: string }

const chromium = await requireService('chromium')

describe('the pages in a browser', needs(chromium), () => {
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

  /** Opens a page, and records its requests to other servers and its errors and warnings. */
  async function open(
    url: string,
  ): Promise<{ page: Page; foreignRequests: string[]; consoleErrors: string[] }> {
    const page = await browser.newPage()
    const foreignRequests: string[] = []
    const consoleErrors: string[] = []
    page.on('request', (request) => {
      if (!request.url().startsWith(url) && !request.url().startsWith('data:'))
        foreignRequests.push(request.url())
    })
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') consoleErrors.push(message.text())
    })
    page.on('pageerror', (error) => consoleErrors.push(String(error)))
    return { page, foreignRequests, consoleErrors }
  }

  it('the status page shows that the server is up, its version, its store and its uptime', async () => {
    const { url } = await startTestServer()
    const { page, foreignRequests, consoleErrors } = await open(url)
    await page.goto(url)
    await page.getByRole('status').getByText('The server is up.').waitFor()
    const facts = await page.locator('dl').innerText()
    expect(facts).toContain(version)
    expect(facts).toContain('memory (lost when the server stops)')
    expect(facts).toMatch(/\d+ seconds?, since/)
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Redrive')
    expect(await page.getByRole('navigation').getByRole('link').allInnerTexts()).toEqual([
      'API',
      'Health',
      'Metrics',
    ])
    expect(await page.getAttribute('html', 'lang')).toBe('en')
    expect({ foreignRequests, consoleErrors }).toEqual({ foreignRequests: [], consoleErrors: [] })
    await page.close()
  })

  it('the status page shows the check that fails', async () => {
    const store = { kind: 'postgres', url: 'postgres://nobody@127.0.0.1:1/none' } as const
    const { url } = await startTestServer({}, store)
    const { page } = await open(url)
    await page.goto(url)
    await page.getByRole('status').getByText('The server is up, but a check fails.').waitFor()
    await page.getByRole('region', { name: 'Failed checks' }).getByText('ECONNREFUSED').waitFor()
    expect(await page.locator('dl').innerText()).toContain('PostgreSQL')
    await page.close()
  })

  it('the status page follows the color scheme of the browser and has enough contrast', async () => {
    const { url } = await startTestServer()
    const { page } = await open(url)
    const seen: string[] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.goto(url)
      await page.getByText('The server is up.').waitFor()
      // As text, because the code runs in the page, where other globals exist.
      const colours = await page.evaluate<Colours>(`({
        ink: getComputedStyle(document.documentElement).color,
        faint: getComputedStyle(document.querySelector('dt')).color,
        ground: getComputedStyle(document.documentElement).backgroundColor,
      })`)
      seen.push(colours.ground)
      expect(contrast(colours.ink, colours.ground)).toBeGreaterThan(7)
      expect(contrast(colours.faint, colours.ground)).toBeGreaterThan(4.5)
    }
    expect(seen[0]).not.toBe(seen[1])
    await page.close()
  })

  it('the API documentation page loads without requests to other servers', async () => {
    const { url } = await startTestApi()
    const { page, foreignRequests, consoleErrors } = await open(url)
    await page.goto(`${url}/docs`)
    await page
      .getByText('Lists queues with their policy and exact counts, in byte order of their names.')
      .waitFor()
    await page.getByText('/api/v1/queues/{name}').first().waitFor()
    expect({ foreignRequests, consoleErrors }).toEqual({ foreignRequests: [], consoleErrors: [] })
    await page.close()
  })
})

/** WCAG contrast of two `rgb(…)` colours. */
function contrast(a: string, b: string): number {
  const [light, dark] = [luminance(a), luminance(b)].toSorted((x, y) => y - x)
  return ((light ?? 0) + 0.05) / ((dark ?? 0) + 0.05)
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = (colour.match(/\d+/g) ?? []).map((part) => {
    const share = Number(part) / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

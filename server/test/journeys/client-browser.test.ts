import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium as launcher } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runProgram } from '../../../tools/run-program.ts'
import { chromiumLaunchArgs } from '../../../tools/services/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { startTestServer } from '../http/test-server.ts'

type Published = typeof import('../../../client/src/index.ts')

const chromium = await requireService('chromium')

describe('the published client in a browser', needs(chromium), () => {
  let browser: Browser
  const folder = mkdtempSync(join(tmpdir(), 'redrive-client-'))
  beforeAll(async () => {
    expect(await runProgram('tsc', ['-p', 'client/tsconfig.build.json', '--outDir', folder])).toBe(0)
    browser = await launcher.launch({
      executablePath: chromium.executablePath,
      args: [...chromiumLaunchArgs()],
    })
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    rmSync(folder, { recursive: true })
  })

  it('the client in a browser produces items and processes them byte for byte, and its worker stops', async () => {
    const { url } = await startTestServer()
    const page = await browser.newPage()
    const pageErrors: string[] = []
    page.on('pageerror', (error) => pageErrors.push(String(error)))
    await page.route(`${url}/published/**`, (route) => {
      const file = new URL(route.request().url()).pathname.slice('/published/'.length)
      return route.fulfill({ contentType: 'text/javascript', body: readFileSync(join(folder, file)) })
    })
    await page.goto(`${url}/health`)
    // As text, because the test runner would replace an import in code with its own import function.
    const published = await page.evaluateHandle<Published>(`import('/published/index.js')`)
    const result = await page.evaluate(async ({ createClient }) => {
      const client = createClient()
      await client.createQueue({ name: 'jobs' })
      await client.produce('jobs', ['ž', Uint8Array.from({ length: 256 }, (_, value) => value)])
      const payloads: number[][] = []
      const worker = client.work(
        'jobs',
        (item) => {
          payloads.push([...item.payload])
          if (item.attempts === 1) throw new TypeError('žádný')
        },
        { waitMs: 100, onError: () => {} },
      )
      while (worker.counts().completed < 2) await new Promise((resolve) => setTimeout(resolve, 10))
      await worker.stop()
      return { payloads, counts: (await client.getQueue('jobs')).counts }
    }, published)
    const bytes = Array.from({ length: 256 }, (_, value) => value)
    expect(result.payloads).toHaveLength(4)
    expect(result.payloads).toEqual(expect.arrayContaining([[0xc5, 0xbe], bytes]))
    expect(result.counts).toMatchObject({ completed: 2, leased: 0, waiting: 0 })
    expect(pageErrors).toEqual([])
    await page.close()
  })
})

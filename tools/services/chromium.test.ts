import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chromium as browserType } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { chromiumLaunchArgs } from './index.ts'
import { needs, requireService } from './require-service.ts'

const chromium = await requireService('chromium')

describe('Chromium', needs(chromium), () => {
  it('Chromium renders a page from loopback and runs its script', async () => {
    const server = createServer((_, response) => {
      response.setHeader('content-type', 'text/html; charset=utf-8')
      response.end('<h1>before</h1><script>document.querySelector("h1").textContent = "after"</script>')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { executablePath } = chromium
    await using browser = await browserType.launch({ executablePath, args: [...chromiumLaunchArgs()] })
    const page = await browser.newPage()
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    expect(await page.textContent('h1')).toBe('after')
    expect((await page.screenshot()).length).toBeGreaterThan(1_000)
    server.close()
  })
})

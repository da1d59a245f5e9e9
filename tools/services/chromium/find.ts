import { Misconfigured, type Running, type ServiceFacts } from '../found.ts'
import { installPackage, unpackProgram } from '../install/debian-package.ts'
import { findProgram } from '../install/find-program.ts'
import { runCommand } from '../process/run-command.ts'

const programs = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']

export async function findChromium(
  configured: string | undefined,
): Promise<Running<ServiceFacts['chromium']>> {
  if (configured !== undefined) {
    const version = await chromiumVersion(configured).catch((error: unknown) => {
      throw new Misconfigured(`REDRIVE_TEST_CHROMIUM is no browser that runs: ${String(error)}`)
    })
    return { facts: { executablePath: configured }, origin: 'configured', version, stop: async () => {} }
  }
  const executablePath = (await findProgram(...programs)) ?? (await fetchChromium())
  const version = await chromiumVersion(executablePath)
  return { facts: { executablePath }, origin: 'installed', version, stop: async () => {} }
}

/** Installed where we may, because fonts come with it that way; else unpacked, which runs as well. */
async function fetchChromium(): Promise<string> {
  const isRoot = process.getuid?.() === 0
  if (isRoot && (await findProgram('apt-get'))) {
    await installPackage('chromium')
    const installed = await findProgram(...programs)
    if (installed !== undefined) return installed
  }
  return unpackProgram({ debianPackage: 'chromium', path: 'usr/lib/chromium/chromium' })
}

async function chromiumVersion(path: string): Promise<string> {
  const answer = await runCommand(path, ['--version', '--no-sandbox'], { msMax: 30_000 })
  return /\d+(?:\.\d+)+/.exec(answer)?.[0] ?? 'unknown'
}

import { installPackage, unpackProgram } from '../install/debian-package.ts'
import { findProgram } from '../install/find-program.ts'
import { runCommand } from '../process/run-command.ts'
import { type RunningService, type ServiceFacts, ServiceMisconfigured } from '../service.ts'

const programs = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']

export async function findChromium(
  configured: string | undefined,
): Promise<RunningService<ServiceFacts['chromium']>> {
  if (configured !== undefined) {
    const version = await readChromiumVersion(configured).catch((error: unknown) => {
      throw new ServiceMisconfigured(
        `REDRIVE_TEST_CHROMIUM does not name a working browser: ${String(error)}`,
      )
    })
    return { facts: { executablePath: configured }, origin: 'configured', version, stop: async () => {} }
  }
  const executablePath = (await findProgram(...programs)) ?? (await fetchChromium())
  const version = await readChromiumVersion(executablePath)
  return { facts: { executablePath }, origin: 'installed', version, stop: async () => {} }
}

/**
 * Root installs the package, because that includes fonts. Other users unpack it, which works without fonts.
 */
async function fetchChromium(): Promise<string> {
  const isRoot = process.getuid?.() === 0
  if (isRoot && (await findProgram('apt-get'))) {
    await installPackage('chromium')
    const installed = await findProgram(...programs)
    if (installed !== undefined) return installed
  }
  return unpackProgram({ debianPackage: 'chromium', path: 'usr/lib/chromium/chromium' })
}

async function readChromiumVersion(path: string): Promise<string> {
  const answer = await runCommand(path, ['--version', '--no-sandbox'], { msMax: 30_000 })
  return /\d+(?:\.\d+)+/.exec(answer)?.[0] ?? 'unknown'
}

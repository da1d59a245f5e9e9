/** Prometheus and promtool, which tests start themselves. Both come from Debian's package `prometheus`. */
import { dirname, join } from 'node:path'
import { unpackProgram } from '../install/debian-package.ts'
import { findProgram } from '../install/find-program.ts'
import { runCommand } from '../process/run-command.ts'
import { type RunningService, type ServiceFacts, ServiceMisconfigured } from '../service.ts'

type Programs = ServiceFacts['prometheus']

/** `configured`: the path of `prometheus`, with `promtool` beside it. */
export async function findPrometheus(configured: string | undefined): Promise<RunningService<Programs>> {
  if (configured !== undefined) {
    const facts = { prometheus: configured, promtool: join(dirname(configured), 'promtool') }
    const version = await readVersion(facts).catch((error: unknown) => {
      throw new ServiceMisconfigured(
        `REDRIVE_TEST_PROMETHEUS does not name a working program: ${String(error)}`,
      )
    })
    return { facts, origin: 'configured', version, stop: async () => {} }
  }
  const facts = (await findInstalled()) ?? (await unpack())
  return { facts, origin: 'installed', version: await readVersion(facts), stop: async () => {} }
}

async function findInstalled(): Promise<Programs | undefined> {
  const [prometheus, promtool] = [await findProgram('prometheus'), await findProgram('promtool')]
  return prometheus === undefined || promtool === undefined ? undefined : { prometheus, promtool }
}

async function unpack(): Promise<Programs> {
  const folder = 'usr/bin'
  const prometheus = await unpackProgram({ debianPackage: 'prometheus', path: `${folder}/prometheus` })
  return { prometheus, promtool: join(dirname(prometheus), folder, 'promtool') }
}

/** Both programs must run. */
async function readVersion({ prometheus, promtool }: Programs): Promise<string> {
  await runCommand(promtool, ['--version'], { msMax: 30_000 })
  const answer = await runCommand(prometheus, ['--version'], { msMax: 30_000 })
  return /\d+(?:\.\d+)+/.exec(answer)?.[0] ?? 'unknown'
}

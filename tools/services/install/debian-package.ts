/**
 * Programs from Debian's packages, for a test run.
 *
 * Unpacking into our cache needs no root and changes nothing outside of it, and no package script
 * runs: installing a server the usual way would also start it, for good. apt keeps its lists and
 * archives in a folder of ours for the same reason, and because the system's may be stale or empty.
 */
import { chmod, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Unavailable } from '../found.ts'
import { runCommand } from '../process/run-command.ts'
import { announce } from './announce.ts'
import { cached, forget } from './cache.ts'
import { findProgram, isExecutable } from './find-program.ts'

export type DebianProgram = Readonly<{
  debianPackage: string
  /** The program's path in the package, with no leading slash. */
  path: string
}>

/** Unpacks a package with all that it depends on and is not installed. Gives the path of a launcher. */
export async function unpackProgram(wanted: DebianProgram): Promise<string> {
  const { debianPackage } = wanted
  if (!(await findProgram('apt-get')) || !(await findProgram('dpkg-deb'))) {
    throw new Unavailable(
      `${debianPackage} is not installed, and this system has no apt-get to fetch it with`,
    )
  }
  const architecture = (await runCommand('dpkg', ['--print-architecture'])).trim()
  const name = `${debianPackage}-${architecture}`
  const launcher = await cachedLauncher(name, wanted)
  if (await answersVersion(launcher)) return launcher
  // It leaned on an installed library that is gone by now, or was upgraded away.
  await forget(name)
  return cachedLauncher(name, wanted)
}

/** Installs a package into the system. Only for root, and only for packages that start no server. */
export async function installPackage(debianPackage: string): Promise<void> {
  announce(`installing Debian's ${debianPackage}`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const install = ['install', '--yes', '--no-install-recommends', debianPackage]
  // The lists of a fresh image are empty, those of an old one name files that are gone.
  await runCommand('apt-get', ['update'], { env })
  await runCommand('apt-get', install, { env })
}

async function cachedLauncher(name: string, wanted: DebianProgram): Promise<string> {
  const folder = await cached(name, (filling) => unpack(wanted, filling))
  return join(folder, 'launch')
}

async function unpack({ debianPackage, path }: DebianProgram, folder: string): Promise<void> {
  announce(`fetching Debian's ${debianPackage}`)
  const apt = await privateApt(join(folder, 'apt'))
  await apt(['update'])
  const plan = await apt(['install', '--simulate', '--no-install-recommends', debianPackage])
  const packages = [...plan.matchAll(/^Inst (\S+) (?:\[\S+\] )?\((\S+)/gm)].map(
    ([, name, version]) => `${name}=${version}`,
  )
  await apt(['download', ...packages])

  const archives = (await readdir(join(folder, 'apt'))).filter((file) => file.endsWith('.deb'))
  for (const archive of archives)
    await runCommand('dpkg-deb', ['--extract', join(folder, 'apt', archive), folder])
  await rm(join(folder, 'apt'), { recursive: true })
  if (!(await isExecutable(join(folder, path))))
    throw new Unavailable(`${debianPackage} has no program ${path}`)
  await writeLauncher(folder, path)
}

/** apt with its state under `folder`, except for the list of what is installed. */
async function privateApt(folder: string): Promise<(args: readonly string[]) => Promise<string>> {
  await mkdir(join(folder, 'lists', 'partial'), { recursive: true })
  await mkdir(join(folder, 'cache', 'archives', 'partial'), { recursive: true })
  const settings = {
    'Dir::State::lists': join(folder, 'lists'),
    'Dir::Cache': join(folder, 'cache'),
    // As root, apt would download as a user who may not be able to enter our cache.
    'APT::Sandbox::User': 'root',
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  return (args) =>
    runCommand('apt-get', [...options, ...args], { cwd: folder, env: { ...process.env, LC_ALL: 'C' } })
}

/** The cache may be renamed or moved, so the launcher finds its libraries from where it is itself. */
async function writeLauncher(folder: string, path: string): Promise<void> {
  const multiarch = (await readdir(join(folder, 'usr/lib'))).filter((name) => name.includes('-linux-gnu'))
  const libraries = ['', ...multiarch].flatMap((name) => [join('usr/lib', name), join('lib', name)])
  const script = `#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH=${libraries.map((each) => `$here/${each}`).join(':')}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "$here/${path}" "$@"
`
  await writeFile(join(folder, 'launch'), script)
  await chmod(join(folder, 'launch'), 0o755)
}

async function answersVersion(program: string): Promise<boolean> {
  return runCommand(program, ['--version'], { msMax: 30_000 }).then(
    () => true,
    () => false,
  )
}

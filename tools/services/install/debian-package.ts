/**
 * Programs from Debian's packages, for a test run.
 *
 * Unpacking into our cache needs no root and changes nothing outside of it, and no package script
 * runs: installing a server the usual way would also start it, for good. apt keeps its lists and
 * archives in a folder of ours for the same reason, and because the system's may be stale or empty.
 */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { Unavailable } from '../found.ts'
import { runCommand } from '../process/run-command.ts'
import { announce } from './announce.ts'
import { cached, forget } from './cache.ts'
import { findProgram } from './find-program.ts'

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
  const fill = (folder: string): Promise<void> => unpack(wanted, folder)
  const launcher = launcherIn(await cached(name, fill))
  if ((await versionFailure(launcher)) === undefined) return launcher
  // It leaned on an installed library that is gone by now, or was upgraded away.
  await forget(name)
  return launcherIn(await cached(name, fill))
}

/** Installs a package into the system. Only for root, and only for packages that start no server. */
export async function installPackage(debianPackage: string): Promise<void> {
  announce(`installing Debian's ${debianPackage}`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  // Another installation may be under way: wait for its end.
  const patience = ['-o', 'DPkg::Lock::Timeout=300']
  const install = [...patience, 'install', '--yes', '--no-install-recommends', debianPackage]
  // The lists of a fresh image are empty, those of an old one name files that are gone.
  await runCommand('apt-get', ['update'], { env })
  await runCommand('apt-get', install, { env })
}

function launcherIn(folder: string): string {
  return join(folder, 'launch')
}

async function unpack({ debianPackage, path }: DebianProgram, folder: string): Promise<void> {
  announce(`fetching Debian's ${debianPackage}`)
  const apt = await privateApt(join(folder, 'apt'))
  await apt(['update'])
  const plan = await apt(['install', '--simulate', '--no-install-recommends', debianPackage])
  const lacking = [...plan.matchAll(/^Inst (\S+) (?:\[\S+\] )?\((\S+)/gm)]
  const packages = lacking.map(([, name, version]) => `${name}=${version}`)
  // Empty if the package is installed, but not where we look for its program.
  await apt(['download', ...(packages.length > 0 ? packages : [debianPackage])])

  const archives = (await readdir(join(folder, 'apt'))).filter((file) => file.endsWith('.deb'))
  for (const archive of archives)
    await runCommand('dpkg-deb', ['--extract', join(folder, 'apt', archive), folder])
  await rm(join(folder, 'apt'), { recursive: true })
  await writeLauncher(folder, path)
  const failure = await versionFailure(launcherIn(folder))
  if (failure !== undefined) throw new Unavailable(`${debianPackage} does not run unpacked: ${failure}`)
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
  const libraries = [...(await libraryFolders(folder, 'usr/lib')), ...(await libraryFolders(folder, 'lib'))]
  const script = `#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH=${libraries.map((each) => `$here/${each}`).join(':')}
export LD_LIBRARY_PATH
exec "$here/${path}" "$@"
`
  await writeFile(launcherIn(folder), script, { mode: 0o755 })
}

/** All that hold libraries: some packages keep theirs in a folder that only their own programs look in. */
async function libraryFolders(root: string, under: string): Promise<readonly string[]> {
  // Not every package has both `lib` and `usr/lib`.
  const entries = await readdir(join(root, under), { recursive: true, withFileTypes: true }).catch(() => [])
  const libraries = entries.filter(({ name }) => name.includes('.so'))
  return [...new Set(libraries.map(({ parentPath }) => relative(root, parentPath)))].sort()
}

/** Why a program does not even tell its version, or undefined if it does. */
async function versionFailure(program: string): Promise<string | undefined> {
  return runCommand(program, ['--version'], { msMax: 30_000 }).then(() => undefined, String)
}

/**
 * Programs from Debian packages, for a test run.
 *
 * Packages are unpacked into the cache. This needs no root, changes nothing outside of the cache, and runs no
 * package scripts: a normal installation of a server would also start it permanently. For the same reason,
 * and because the lists of the system may be outdated or empty, apt keeps its lists and archives in the cache
 * too.
 */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { runCommand } from '../process/run-command.ts'
import { ServiceUnavailable } from '../service.ts'
import { announce } from './announce.ts'
import { getOrFill, removeFromCache } from './cache.ts'
import { findProgram } from './find-program.ts'

export type DebianProgram = Readonly<{
  debianPackage: string
  /** The program's path in the package, with no leading slash. */
  path: string
}>

/** Unpacks a package with its missing dependencies. Returns the path of a launcher. */
export async function unpackProgram(wanted: DebianProgram): Promise<string> {
  const { debianPackage } = wanted
  if (!(await findProgram('apt-get')) || !(await findProgram('dpkg-deb'))) {
    throw new ServiceUnavailable(
      `${debianPackage} is not installed, and this system has no apt-get to fetch it with`,
    )
  }
  const architecture = (await runCommand('dpkg', ['--print-architecture'])).trim()
  const name = `${debianPackage}-${architecture}`
  const fill = (folder: string): Promise<void> => unpack(wanted, folder)
  const launcher = launcherIn(await getOrFill(name, fill))
  if ((await checkVersion(launcher)) === undefined) return launcher
  // The program used a library of the system that was removed or upgraded since.
  await removeFromCache(name)
  return launcherIn(await getOrFill(name, fill))
}

/** Installs a package into the system. Only for root, and only for packages that start no server. */
export async function installPackage(debianPackage: string): Promise<void> {
  announce(`installing Debian's ${debianPackage}`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  // Another installation may be in progress: wait until it ends.
  const waitForLock = ['-o', 'DPkg::Lock::Timeout=300']
  const install = [...waitForLock, 'install', '--yes', '--no-install-recommends', debianPackage]
  // The package lists of a new image are empty, and the lists of an old image name removed files.
  await runCommand('apt-get', ['update'], { env })
  await runCommand('apt-get', install, { env })
}

function launcherIn(folder: string): string {
  return join(folder, 'launch')
}

async function unpack({ debianPackage, path }: DebianProgram, folder: string): Promise<void> {
  announce(`fetching Debian's ${debianPackage}`)
  const apt = await createPrivateApt(join(folder, 'apt'))
  await apt(['update'])
  const plan = await apt(['install', '--simulate', '--no-install-recommends', debianPackage])
  const missing = [...plan.matchAll(/^Inst (\S+) (?:\[\S+\] )?\((\S+)/gm)]
  const packages = missing.map(([, name, version]) => `${name}=${version}`)
  // Empty if the package is installed, but its program is not in the PATH.
  await apt(['download', ...(packages.length > 0 ? packages : [debianPackage])])

  const archives = (await readdir(join(folder, 'apt'))).filter((file) => file.endsWith('.deb'))
  for (const archive of archives)
    await runCommand('dpkg-deb', ['--extract', join(folder, 'apt', archive), folder])
  await rm(join(folder, 'apt'), { recursive: true })
  await writeLauncher(folder, path)
  const failure = await checkVersion(launcherIn(folder))
  if (failure !== undefined)
    throw new ServiceUnavailable(`${debianPackage} does not run after unpacking: ${failure}`)
}

/** Runs apt with its state below `folder`, except for the list of installed packages. */
async function createPrivateApt(folder: string): Promise<(args: readonly string[]) => Promise<string>> {
  await mkdir(join(folder, 'lists', 'partial'), { recursive: true })
  await mkdir(join(folder, 'cache', 'archives', 'partial'), { recursive: true })
  const settings = {
    'Dir::State::lists': join(folder, 'lists'),
    'Dir::Cache': join(folder, 'cache'),
    // By default, apt of root downloads as another user, who may not be able to read the cache.
    'APT::Sandbox::User': 'root',
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  return (args) =>
    runCommand('apt-get', [...options, ...args], { cwd: folder, env: { ...process.env, LC_ALL: 'C' } })
}

/** The launcher finds its libraries relative to its own path, because the cache can be renamed or moved. */
async function writeLauncher(folder: string, path: string): Promise<void> {
  const libraries = [
    ...(await findLibraryFolders(folder, 'usr/lib')),
    ...(await findLibraryFolders(folder, 'lib')),
  ]
  const script = `#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH=${libraries.map((each) => `$here/${each}`).join(':')}
export LD_LIBRARY_PATH
exec "$here/${path}" "$@"
`
  await writeFile(launcherIn(folder), script, { mode: 0o755 })
}

/** Finds all folders with libraries: some packages use a folder that only their own programs search. */
async function findLibraryFolders(root: string, under: string): Promise<readonly string[]> {
  // Not every package has both `lib` and `usr/lib`.
  const entries = await readdir(join(root, under), { recursive: true, withFileTypes: true }).catch(() => [])
  const libraries = entries.filter(({ name }) => name.includes('.so'))
  return [...new Set(libraries.map(({ parentPath }) => relative(root, parentPath)))].sort()
}

/** Returns why the program cannot print its version, or undefined if it can. */
async function checkVersion(program: string): Promise<string | undefined> {
  return runCommand(program, ['--version'], { msMax: 30_000 }).then(() => undefined, String)
}

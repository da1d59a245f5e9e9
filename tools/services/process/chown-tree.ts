import { chown, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { User } from './unprivileged-user.ts'

/** Gives a folder and everything in it to the user. */
export async function chownTree(folder: string, { uid, gid }: User): Promise<void> {
  const entries = await readdir(folder, { recursive: true })
  for (const path of [folder, ...entries.map((entry) => join(folder, entry))]) await chown(path, uid, gid)
}

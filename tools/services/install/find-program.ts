import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, join } from 'node:path'

/** Returns the path of the first installed program with one of these names. */
export async function findProgram(...names: readonly string[]): Promise<string | undefined> {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  for (const path of names.flatMap((name) => folders.map((folder) => join(folder, name)))) {
    if (await isExecutable(path)) return path
  }
  return undefined
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}

import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes a folder and the folders above it. Not with `recursive: true`: where the system will not let a
 * folder be made and says that its parent is missing, as under /proc, that tries for ever.
 */
export function createFolder(path: string): void {
  const missing: string[] = []
  for (let folder = path; !exists(folder); folder = dirname(folder)) missing.push(folder)
  for (const folder of missing.reverse()) {
    try {
      mkdirSync(folder)
    } catch (error) {
      // Another server may start at the same moment.
      if (!exists(folder)) throw error
    }
  }
}

function exists(folder: string): boolean {
  return statSync(folder, { throwIfNoEntry: false }) !== undefined
}

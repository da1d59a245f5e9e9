import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Creates a folder and the folders above it. It does not use `recursive: true` of Node, which never returns
 * where the system refuses a folder and reports that its parent is missing, as under /proc.
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

import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { repository } from './run-program.ts'

/**
 * Fills a temporary folder and then replaces `folder` with it. No old files remain, a failed build keeps the
 * old folder, and of two concurrent builds the later one wins. Resolves with false if `fill` does.
 */
export async function replaceFolder(
  folder: string,
  fill: (folder: string) => Promise<boolean>,
): Promise<boolean> {
  const parent = join(repository, '.cache/build')
  mkdirSync(parent, { recursive: true })
  const filled = mkdtempSync(join(parent, 'new-'))
  try {
    if (!(await fill(filled))) return false
    moveTo(filled, folder)
    return true
  } finally {
    rmSync(filled, { recursive: true, force: true })
  }
}

function moveTo(source: string, folder: string, attempts = 5): void {
  rmSync(folder, { recursive: true, force: true })
  try {
    renameSync(source, folder)
  } catch (error) {
    // Another build created the folder between the two steps.
    const isTaken = ['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')
    if (!isTaken || attempts <= 1) throw error
    moveTo(source, folder, attempts - 1)
  }
}

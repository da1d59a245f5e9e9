import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { repository } from './run-program.ts'

/**
 * Makes a folder anew and puts it in place whole: nothing is left over from before, a failed build
 * leaves the old one, and of two builds at once the later one stands. False when `make` says so.
 */
export async function replaceFolder(
  folder: string,
  make: (folder: string) => Promise<boolean>,
): Promise<boolean> {
  const workshop = join(repository, '.cache/build')
  mkdirSync(workshop, { recursive: true })
  const made = mkdtempSync(join(workshop, 'new-'))
  try {
    if (!(await make(made))) return false
    moveTo(made, folder)
    return true
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
}

function moveTo(made: string, folder: string, attempts = 5): void {
  rmSync(folder, { recursive: true, force: true })
  try {
    renameSync(made, folder)
  } catch (error) {
    // Another build came between the two steps.
    const isTaken = ['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')
    if (!isTaken || attempts <= 1) throw error
    moveTo(made, folder, attempts - 1)
  }
}

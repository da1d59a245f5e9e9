import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { settingsTable } from '../../server/src/config/settings.ts'
import { settingsPage } from '../../server/src/config/settings-page.ts'
import { errorsPage } from './errors-page.ts'
import { surfaceText } from './surface-text.ts'

const repository = new URL('../../', import.meta.url)

/** Files that are made from the code, kept in the repository so that a change to them is seen. */
export const approvedFiles: Readonly<Record<string, () => string>> = {
  'test/surface/approved.txt': surfaceText,
  'docs/errors.md': errorsPage,
  'docs/settings.md': () => settingsPage(settingsTable),
}

export const howToApprove = 'If the change is meant, approve it: node tools/approve-surface.ts'

export function readApproved(path: string): string {
  try {
    return readFileSync(fileURLToPath(new URL(path, repository)), 'utf8')
  } catch {
    return '' // Not there yet: all of it is new.
  }
}

export function writeApproved(path: string, text: string): void {
  writeFileSync(fileURLToPath(new URL(path, repository)), text)
}

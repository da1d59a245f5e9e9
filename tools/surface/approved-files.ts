import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { settingsTable } from '../../server/src/config/settings/settings.ts'
import { buildSettingsPage } from '../../server/src/config/settings/settings-page.ts'
import { buildAccessPage } from './access-table.ts'
import { buildErrorsPage } from './errors-page.ts'
import { buildSurfaceText } from './surface-text.ts'

const repository = new URL('../../', import.meta.url)

/**
 * Files generated from the code. They are kept in the repository so that every change to them shows as a
 * diff.
 */
export const approvedFiles: Readonly<Record<string, () => string>> = {
  'test/surface/approved.txt': buildSurfaceText,
  'docs/access.md': buildAccessPage,
  'docs/errors.md': buildErrorsPage,
  'docs/settings.md': () => buildSettingsPage(settingsTable),
}

export const howToApprove = 'If the change is intended, approve it: node tools/approve-surface.ts'

export function readApproved(path: string): string {
  try {
    return readFileSync(fileURLToPath(new URL(path, repository)), 'utf8')
  } catch {
    return '' // The file does not exist yet.
  }
}

export function writeApproved(path: string, text: string): void {
  writeFileSync(fileURLToPath(new URL(path, repository)), text)
}

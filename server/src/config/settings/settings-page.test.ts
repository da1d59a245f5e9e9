import { expect, it } from 'vitest'
import { settingsTable } from './settings.ts'
import { buildSettingsPage } from './settings-page.ts'

it('docs/settings.md matches the settings table (vitest --update regenerates it)', async () => {
  await expect(buildSettingsPage(settingsTable)).toMatchFileSnapshot('../../../../docs/settings.md')
})

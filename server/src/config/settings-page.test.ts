import { expect, it } from 'vitest'
import { settingsTable } from './settings.ts'
import { settingsPage } from './settings-page.ts'

it('docs/settings.md is what the table says (vitest --update writes it anew)', async () => {
  await expect(settingsPage(settingsTable)).toMatchFileSnapshot('../../../docs/settings.md')
})

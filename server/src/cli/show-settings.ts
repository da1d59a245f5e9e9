import type { LoadedSettings } from '../config/settings/load-settings.ts'
import { describeOrigin } from '../config/settings/origin.ts'
import type { Setting } from '../config/settings/setting-kinds.ts'
import { type SettingName, settingsTable } from '../config/settings/settings.ts'
import type { Context } from './context.ts'
import { exitCodes } from './exit-codes.ts'

/** Prints every effective setting and its source. A secret is shown as its reference or as `[secret]`. */
export function showSettings({ settings, origins }: LoadedSettings, context: Context): number {
  const rows = (Object.keys(settingsTable) as SettingName[]).map((name) => {
    const setting: Setting<unknown> = settingsTable[name]
    const value = settings[name]
    return [name, value === undefined ? '(not set)' : setting.format(value), describeOrigin(origins[name])]
  })
  const table = [['setting', 'value', 'from'], ...rows]
  const widths = [0, 1].map((column) => Math.max(...table.map((row) => (row[column] ?? '').length)))
  for (const row of table) {
    context.print(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
  }
  return exitCodes.ok
}

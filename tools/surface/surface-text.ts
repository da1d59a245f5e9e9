import { permissions } from '../../server/src/api/http/permission.ts'
import { routes } from '../../server/src/api/routes.ts'
import {
  type SettingsTable,
  settingsTable,
  toEnvironmentName,
  toFlag,
} from '../../server/src/config/settings/settings.ts'
import { errorCodes, getErrorEntry } from '../../server/src/errors.ts'

/** Lists everything that users rely on by name, as text, so that a change to it shows as a diff. */
export function buildSurfaceText(): string {
  return [
    '# Generated: all names that users rely on. A change here is a change for users.',
    '# After an intended change run: node tools/approve-surface.ts',
    '',
    '[routes] method, path, permission',
    ...table(routes.map((row) => [row.method, row.path, row.permission])),
    '',
    '[permissions]',
    ...permissions.toSorted(),
    '',
    '[settings] name, type, default, allowed values, flag, environment',
    ...settingLines(settingsTable),
    '',
    '[errors] code, status',
    ...table(errorCodes.map((code) => [code, String(getErrorEntry(code).status)])),
    '',
  ].join('\n')
}

function settingLines(settings: SettingsTable): string[] {
  return table(
    Object.entries(settings).map(([name, setting]) => [
      name,
      setting.type,
      setting.default === undefined ? '-' : setting.format(setting.default),
      setting.allowed,
      toFlag(name),
      toEnvironmentName(name),
      ...(setting.sharedVariable === undefined ? [] : [setting.sharedVariable.name]),
    ]),
  )
}

/** Sorted and not aligned, so that a line changes only when its own content changes. */
function table(rows: readonly (readonly string[])[]): string[] {
  return rows.map((row) => row.join(' | ')).toSorted()
}

import { permissions } from '../../server/src/api/http/permission.ts'
import { routes } from '../../server/src/api/routes.ts'
import {
  environmentNameOf,
  flagOf,
  type SettingsTable,
  settingsTable,
} from '../../server/src/config/settings.ts'
import { errorCodes, errorEntry } from '../../server/src/errors.ts'

/** Everything that users of Redrive can rely on by name, as text: a change to it shows as a diff. */
export function surfaceText(): string {
  return [
    '# What users rely on by name. A change here is a change for them.',
    '# After a change on purpose: node tools/approve-surface.ts',
    '',
    '[routes] method, path, permission',
    ...table(routes.map((row) => [row.method, row.path, row.permission])),
    '',
    '[permissions]',
    ...permissions.toSorted(),
    '',
    '[settings] name, type, default, what is allowed, flag, environment',
    ...settingLines(settingsTable),
    '',
    '[errors] code, status',
    ...table(errorCodes.map((code) => [code, String(errorEntry(code).status)])),
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
      flagOf(name),
      environmentNameOf(name),
      ...(setting.known === undefined ? [] : [setting.known.name]),
    ]),
  )
}

/** Sorted and not aligned, so that a line changes only when what it says does. */
function table(rows: readonly (readonly string[])[]): string[] {
  return rows.map((row) => row.join(' | ')).toSorted()
}

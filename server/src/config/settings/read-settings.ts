import { KnownError } from '../../errors.ts'
import { findNearest } from '../../find-nearest.ts'
import { maskStore } from '../store/store-text.ts'
import { describeOrigin, type Origin, type RawSetting } from './origin.ts'
import type { Setting } from './setting-kinds.ts'
import { type SettingsTable, toEnvironmentName, toFlag, type ValuesOf } from './settings.ts'

export type ReadSettings<Table> = Readonly<{
  settings: ValuesOf<Table>
  origins: Readonly<Record<keyof Table, Origin>>
}>

/**
 * Checks the given values against the table and adds the defaults. A later value overrides an earlier one,
 * but all are checked: an invalid value in the file is an error even if a flag overrides it.
 */
export function readSettings<Table extends SettingsTable>(
  table: Table,
  givens: readonly RawSetting[],
): ReadSettings<Table> {
  const values: Record<string, unknown> = {}
  const origins: Record<string, Origin> = {}
  for (const [name, setting] of Object.entries(table)) {
    values[name] = setting.default
    origins[name] = { kind: 'default' }
  }
  for (const given of givens) {
    values[given.name] = readValue(table, given)
    origins[given.name] = given.origin
  }
  // `readValue` has checked every value against the table, which determines the type of the result.
  return { settings: values as ValuesOf<Table>, origins: origins as Record<keyof Table, Origin> }
}

function readValue(table: SettingsTable, given: RawSetting): unknown {
  const setting = Object.hasOwn(table, given.name) ? table[given.name] : undefined
  if (setting === undefined) throw createUnknownSettingError(Object.keys(table), given)
  const value = setting.parse(given.text)
  if (value === undefined) throw createBadValueError(setting, given)
  return value
}

function createUnknownSettingError(names: readonly string[], given: RawSetting): KnownError {
  const nearest = findNearest(given.name, names)
  const { origin } = given
  const [subject, suggestion] =
    origin.kind === 'environment'
      ? [`the environment variable ${origin.variable}`, nearest && toEnvironmentName(nearest)]
      : origin.kind === 'flag'
        ? [`the flag ${origin.flag}`, nearest && toFlag(nearest)]
        : [`${JSON.stringify(given.name)} in ${describeOrigin(origin)}`, nearest]
  return new KnownError('SETTING_INVALID', `${subject} is not a setting${formatSuggestion(suggestion)}`)
}

function createBadValueError(setting: Setting<unknown>, given: RawSetting): KnownError {
  const origin = describeOrigin(given.origin)
  const found = setting.type === 'secret' ? 'is not usable' : `is ${formatText(given.text)}`
  const nearest = findNearest(given.text, setting.choices)
  return new KnownError(
    'SETTING_INVALID',
    `${given.name} (from ${origin}) ${found}, but must be ${setting.allowed}${formatSuggestion(nearest)}`,
  )
}

export function formatSuggestion(suggestion: string | undefined): string {
  return suggestion === undefined ? '' : `; did you mean ${suggestion}?`
}

/** Shortens the text to one line, and removes the password of a URL that was given for the wrong setting. */
function formatText(text: string): string {
  const shown = maskStore(text)
  return JSON.stringify(shown.length > 60 ? `${shown.slice(0, 60)}…` : shown)
}

import { KnownError } from '../errors.ts'
import { nearest } from '../nearest.ts'
import { describeOrigin, type Given, type Origin } from './origin.ts'
import type { Setting } from './setting-kinds.ts'
import { environmentNameOf, flagOf, type SettingsTable, type ValuesOf } from './settings.ts'
import { maskStore } from './store-text.ts'

export type ReadSettings<Table> = Readonly<{
  settings: ValuesOf<Table>
  origins: Readonly<Record<keyof Table, Origin>>
}>

/**
 * Checks what was given against the table and fills in the defaults. Later givens win over earlier
 * ones, but all are checked: a mistake in the file is a mistake even where a flag hides it.
 */
export function readSettings<Table extends SettingsTable>(
  table: Table,
  givens: readonly Given[],
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
  // The one place where the table's names and types become those of the result.
  return { settings: values as ValuesOf<Table>, origins: origins as Record<keyof Table, Origin> }
}

function readValue(table: SettingsTable, given: Given): unknown {
  const setting = Object.hasOwn(table, given.name) ? table[given.name] : undefined
  if (setting === undefined) throw unknownSetting(Object.keys(table), given)
  const value = setting.parse(given.text)
  if (value === undefined) throw badValue(setting, given)
  return value
}

function unknownSetting(names: readonly string[], given: Given): KnownError {
  const meant = nearest(given.name, names)
  const { origin } = given
  const [what, suggestion] =
    origin.kind === 'environment'
      ? [`the environment variable ${origin.variable}`, meant && environmentNameOf(meant)]
      : origin.kind === 'flag'
        ? [`the flag ${origin.flag}`, meant && flagOf(meant)]
        : [`${JSON.stringify(given.name)} in ${describeOrigin(origin)}`, meant]
  return new KnownError('SETTING_INVALID', `${what} is not a setting${didYouMean(suggestion)}`)
}

function badValue(setting: Setting<unknown>, given: Given): KnownError {
  const place = describeOrigin(given.origin)
  const found = setting.type === 'secret' ? 'is not usable' : `is ${showText(given.text)}`
  const meant = nearest(given.text, setting.choices)
  return new KnownError(
    'SETTING_INVALID',
    `${given.name} (from ${place}) ${found}, but must be ${setting.allowed}${didYouMean(meant)}`,
  )
}

export function didYouMean(suggestion: string | undefined): string {
  return suggestion === undefined ? '' : `; did you mean ${suggestion}?`
}

/** Short, on one line, and without the password of a URL that landed in the wrong place. */
function showText(text: string): string {
  const shown = maskStore(text)
  return JSON.stringify(shown.length > 60 ? `${shown.slice(0, 60)}…` : shown)
}

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { KnownError } from '../errors.ts'
import { type Environment, environmentGivens, knownVariableGivens } from './environment.ts'
import type { Given } from './origin.ts'
import { describeOrigin } from './origin.ts'
import { type ReadSettings, readSettings } from './read-settings.ts'
import { environmentNameOf, flagOf, type SettingName, settingsTable } from './settings.ts'
import { settingsFileGivens } from './settings-file.ts'

export type LoadedSettings = ReadSettings<typeof settingsTable>

export type SettingsSources = Readonly<{
  /** What the command line sets, by the setting's name. */
  flags: Readonly<Partial<Record<SettingName, string>>>
  environment: Environment
  folder: string
}>

const names = Object.keys(settingsTable) as SettingName[]
const defaultFile = 'redrive.yaml'

/** The settings in force: flag before environment before file before default. */
export function loadSettings(sources: SettingsSources): LoadedSettings {
  const flags = flagGivens(sources.flags)
  const environment = [
    ...knownVariableGivens(settingsTable, sources.environment),
    ...environmentGivens(names, sources.environment),
  ]
  const file = fileGivens(sources, [...environment, ...flags])
  return readSettings(settingsTable, [...file, ...environment, ...flags])
}

function flagGivens(flags: SettingsSources['flags']): Given[] {
  return names.flatMap((name) => {
    const text = flags[name]
    return text === undefined ? [] : [{ name, text, origin: { kind: 'flag', flag: flagOf(name) } }]
  })
}

function fileGivens(sources: SettingsSources, others: readonly Given[]): Given[] {
  const named = others.findLast((given) => given.name === 'config')
  const path = named?.text ?? defaultFile
  const text = readFile(resolve(sources.folder, path), path, named)
  const givens = text === undefined ? [] : settingsFileGivens(path, text)
  const nested = givens.find((given) => given.name === 'config')
  if (nested !== undefined) {
    throw new KnownError(
      'SETTING_INVALID',
      `config cannot be set in ${describeOrigin(nested.origin)}: use ${flagOf('config')} or ${environmentNameOf('config')}`,
    )
  }
  return givens
}

function readFile(absolute: string, path: string, named: Given | undefined): string | undefined {
  try {
    return readFileSync(absolute, 'utf8')
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'unknown'
    if (named === undefined && reason === 'ENOENT') return undefined
    const from = named === undefined ? '' : ` (from ${describeOrigin(named.origin)})`
    throw new KnownError(
      'SETTING_INVALID',
      `the settings file ${path}${from} cannot be read: ${reason}`,
      error,
    )
  }
}

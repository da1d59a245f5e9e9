import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { KnownError } from '../../errors.ts'
import { applyDatabaseBlock, removeUnusedLines } from '../store/database-block.ts'
import { type Environment, readEnvironment, readSharedVariables } from './environment.ts'
import type { RawSetting } from './origin.ts'
import { describeOrigin } from './origin.ts'
import { type ReadSettings, readSettings } from './read-settings.ts'
import { type SettingName, settingsTable, toEnvironmentName, toFlag } from './settings.ts'
import { parseSettingsFile } from './settings-file.ts'

export type LoadedSettings = ReadSettings<typeof settingsTable>

export type SettingsSources = Readonly<{
  /** The settings of the command line, by name. */
  flags: Readonly<Partial<Record<SettingName, string>>>
  environment: Environment
  folder: string
}>

const names = Object.keys(settingsTable) as SettingName[]
const fileDefault = 'redrive.yaml'

/** Loads the effective settings. Precedence: flag, environment, file, default. */
export function loadSettings(sources: SettingsSources): LoadedSettings {
  const flags = readFlags(sources.flags)
  const environment = [
    ...readSharedVariables(settingsTable, sources.environment),
    ...readEnvironment(names, sources.environment),
  ]
  const file = readSettingsFile(sources, [...environment, ...flags])
  return applyDatabaseBlock(readSettings(settingsTable, [...file, ...environment, ...flags]))
}

function readFlags(flags: SettingsSources['flags']): RawSetting[] {
  return names.flatMap((name) => {
    const text = flags[name]
    return text === undefined ? [] : [{ name, text, origin: { kind: 'flag', flag: toFlag(name) } }]
  })
}

function readSettingsFile(sources: SettingsSources, others: readonly RawSetting[]): RawSetting[] {
  const named = others.findLast((given) => given.name === 'config')
  const path = named?.text ?? fileDefault
  const text = readFile(resolve(sources.folder, path), path, named)
  const givens = text === undefined ? [] : removeUnusedLines(parseSettingsFile(path, text))
  const nested = givens.find((given) => given.name === 'config')
  if (nested !== undefined) {
    throw new KnownError(
      'SETTING_INVALID',
      `config cannot be set in ${describeOrigin(nested.origin)}: use ${toFlag('config')} or ${toEnvironmentName('config')}`,
    )
  }
  return givens
}

function readFile(absolute: string, path: string, named: RawSetting | undefined): string | undefined {
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

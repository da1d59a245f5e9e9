import { type Command, Option } from 'commander'
import type { Setting } from '../config/setting-kinds.ts'
import { type SettingName, settingsTable, toEnvironmentName, toFlag } from '../config/settings.ts'

export type Flags = Readonly<Partial<Record<SettingName, string>>>

const entries = Object.entries(settingsTable) as [SettingName, Setting<unknown>][]

/** Gives a command a flag for every setting. Those not `shown` work too, but the help leaves them out. */
export function addSettingOptions(command: Command, shown: (name: SettingName) => boolean): void {
  for (const [name, setting] of entries) {
    const option = new Option(`${toFlag(name)} ${argumentOf(setting)}`, describe(name, setting))
    option.helpGroup(headingOf(name))
    if (!shown(name)) option.hideHelp()
    command.addOption(option)
  }
}

/** What the command line set, by the setting's name. */
export function readFlags(command: Command): Flags {
  const flags: Partial<Record<SettingName, string>> = {}
  for (const [name] of entries) {
    const option = command.options.find((candidate) => candidate.long === toFlag(name))
    const value: unknown = option && command.getOptionValue(option.attributeName())
    if (value !== undefined) flags[name] = String(value)
  }
  return flags
}

export const settingFlags: readonly string[] = entries.map(([name]) => toFlag(name))

/** A boolean's flag may stand alone, and then means true. */
function argumentOf({ type }: Setting<unknown>): string {
  return type === 'boolean' ? '[boolean]' : `<${type}>`
}

function describe(name: string, setting: Setting<unknown>): string {
  const fallback = setting.default === undefined ? [] : [`default: ${setting.format(setting.default)}`]
  const bounds = setting.bounds === '' ? [] : [setting.bounds]
  const variables = [
    toEnvironmentName(name),
    ...(setting.sharedVariable === undefined ? [] : [setting.sharedVariable.name]),
  ]
  return `${setting.sentence} (${[...bounds, ...fallback, `env: ${variables.join(', ')}`].join('; ')})`
}

function headingOf(name: string): string {
  const [section = '', rest] = name.split('.')
  return rest === undefined ? 'Settings:' : `Settings, ${section}:`
}

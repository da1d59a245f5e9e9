import { type Command, Option } from 'commander'
import type { Setting } from '../config/settings/setting-kinds.ts'
import { type SettingName, settingsTable, toEnvironmentName, toFlag } from '../config/settings/settings.ts'

export type Flags = Readonly<Partial<Record<SettingName, string>>>

const entries = Object.entries(settingsTable) as [SettingName, Setting<unknown>][]

/**
 * Adds a flag for every setting to the command. The help lists only the flags for which `isListed` is true.
 */
export function addSettingOptions(command: Command, isListed: (name: SettingName) => boolean): void {
  for (const [name, setting] of entries) {
    const option = new Option(`${toFlag(name)} ${formatArgument(setting)}`, describe(name, setting))
    option.helpGroup(formatHeading(name))
    if (!isListed(name)) option.hideHelp()
    command.addOption(option)
  }
}

/** Reads the settings of the command line, by name. */
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

/** The flag of a boolean without a value means true. */
function formatArgument({ type }: Setting<unknown>): string {
  return type === 'boolean' ? '[boolean]' : `<${type}>`
}

function describe(name: string, setting: Setting<unknown>): string {
  const defaultText = setting.default === undefined ? [] : [`default: ${setting.format(setting.default)}`]
  const bounds = setting.bounds === '' ? [] : [setting.bounds]
  const variables = [
    toEnvironmentName(name),
    ...(setting.sharedVariable === undefined ? [] : [setting.sharedVariable.name]),
  ]
  return `${setting.sentence} (${[...bounds, ...defaultText, `env: ${variables.join(', ')}`].join('; ')})`
}

function formatHeading(name: string): string {
  const [section = '', nameInSection] = name.split('.')
  return nameInSection === undefined ? 'Settings:' : `Settings, ${section}:`
}

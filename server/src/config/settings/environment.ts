import type { RawSetting } from './origin.ts'
import { type SettingsTable, toEnvironmentName } from './settings.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Variables for flags of single commands: the server that a command calls, and the key for it. */
const flags: ReadonlySet<string> = new Set(['REDRIVE_SERVER', 'REDRIVE_KEY'])

/**
 * Reads every REDRIVE_* variable, also unknown ones, so that a misspelt variable stops the start. An empty
 * variable counts as not set, because `REDRIVE_PORT=${PORT}` in a compose file leaves it empty.
 */
export function readEnvironment(names: readonly string[], environment: Environment): RawSetting[] {
  const nameOf = new Map(names.map((name) => [toEnvironmentName(name), name]))
  return Object.entries(environment)
    .filter(
      ([variable]) =>
        nameOf.has(variable) ||
        (variable.startsWith('REDRIVE_') && !variable.startsWith('REDRIVE_TEST_') && !flags.has(variable)),
    )
    .filter(([variable, text]) => !isServiceLink(variable, text ?? '', environment))
    .filter(([, text]) => text !== undefined && text !== '')
    .map(([variable, text]) => ({
      name: nameOf.get(variable) ?? variable.slice('REDRIVE_'.length).toLowerCase().replaceAll('_', '.'),
      text: text ?? '',
      origin: { kind: 'environment', variable },
    }))
}

/**
 * Reads variables that similar systems also use. They may be set for another system, so they never stop the
 * start: a value out of bounds becomes the nearest allowed value, and an unreadable value counts as not set.
 */
export function readSharedVariables(table: SettingsTable, environment: Environment): RawSetting[] {
  return Object.entries(table).flatMap(([name, { sharedVariable }]) => {
    const text = sharedVariable?.correct(environment[sharedVariable.name] ?? '')
    if (sharedVariable === undefined || text === undefined) return []
    return [{ name, text, origin: { kind: 'environment', variable: sharedVariable.name } }]
  })
}

/**
 * Kubernetes describes every service of a namespace in the environment of each container. A service called
 * `redrive` sets REDRIVE_PORT=tcp://10.0.0.7:8080 and a dozen other variables, which are not settings.
 */
function isServiceLink(variable: string, text: string, environment: Environment): boolean {
  if (environment.KUBERNETES_SERVICE_HOST === undefined) return false
  if (/_SERVICE_(HOST|PORT(_\w+)?)$/.test(variable)) return true
  if (/_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/.test(variable)) return true
  return variable.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(text)
}

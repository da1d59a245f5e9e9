import type { Given } from './origin.ts'
import { environmentNameOf, type SettingsTable } from './settings.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * What the environment sets: every REDRIVE_* variable, known or not, so that a misspelt one stops the
 * start. An empty one counts as not set, as `REDRIVE_PORT=${PORT}` in a compose file leaves it.
 */
export function environmentGivens(names: readonly string[], environment: Environment): Given[] {
  const nameOf = new Map(names.map((name) => [environmentNameOf(name), name]))
  return Object.entries(environment)
    .filter(
      ([variable]) =>
        nameOf.has(variable) || (variable.startsWith('REDRIVE_') && !variable.startsWith('REDRIVE_TEST_')),
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
 * What variables set that other systems of the kind have, too. They are not ours to complain about: a value out of
 * bounds is the nearest one allowed, and what cannot be read is not set.
 */
export function knownVariableGivens(table: SettingsTable, environment: Environment): Given[] {
  return Object.entries(table).flatMap(([name, { known }]) => {
    const text = known?.mend(environment[known.name] ?? '')
    if (known === undefined || text === undefined) return []
    return [{ name, text, origin: { kind: 'environment', variable: known.name } }]
  })
}

/**
 * Kubernetes describes every service of a namespace in each container's environment. A service called
 * `redrive` gives REDRIVE_PORT=tcp://10.0.0.7:8080 and a dozen more, which are nobody's settings.
 */
function isServiceLink(variable: string, text: string, environment: Environment): boolean {
  if (environment.KUBERNETES_SERVICE_HOST === undefined) return false
  if (/_SERVICE_(HOST|PORT(_\w+)?)$/.test(variable)) return true
  if (/_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/.test(variable)) return true
  return variable.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(text)
}

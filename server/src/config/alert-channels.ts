/**
 * The setting `alerts.channels`: a list of maps. In redrive.yaml it is written as such; a flag or an
 * environment variable has the same structure as JSON.
 */
import {
  channelKinds,
  decodeTarget,
  findChannelNameProblem,
  isChannelKind,
  listFields,
} from '../core/alerts/channel.ts'
import type { ConfiguredChannel } from '../core/alerts/configured-channel.ts'
import { systemNamespace } from '../core/items/queue.ts'
import { Secret } from './secrets/secret.ts'
import { parseReference, showReference } from './secrets/secret-reference.ts'
import { refuseSetting, SettingNode } from './settings/setting-node.ts'

const setting = 'alerts.channels'
const configuredMax = 200

export type ChannelSetting = ConfiguredChannel<Secret>

export function parseAlertChannels(text: string): readonly ChannelSetting[] {
  const rows = SettingNode.parse(text, setting, 'a list of maps').items()
  if (rows.length > configuredMax)
    throw refuseSetting(`${setting} has ${rows.length} channels; the limit is ${configuredMax}`)
  const names = new Set<string>()
  return rows.map((row) => {
    const channel = readChannel(row)
    if (names.has(channel.name)) throw refuseSetting(`${setting} has ${channel.name} twice`)
    names.add(channel.name)
    return channel
  })
}

function readChannel(row: SettingNode): ChannelSetting {
  const name = row.at('name').required()
  const problem = findChannelNameProblem(name)
  if (problem !== undefined) throw refuseSetting(`${row.path}.name: ${problem}`)
  const kind = row.at('kind').required()
  if (!isChannelKind(kind))
    throw refuseSetting(`${row.path}.kind is ${JSON.stringify(kind)}; known are ${channelKinds.join(', ')}`)
  const namespace = row.at('namespace').text() ?? systemNamespace
  const { name: _, kind: __, namespace: ___, ...values } = row.fields()
  const secretNames = new Set(listFields(kind).flatMap((field) => (field.isSecret ? [field.name] : [])))
  const isPending = (field: string): boolean => isReference(row, field, values, secretNames)
  const decoded = decodeTarget(kind, values, isPending)
  if ('problems' in decoded) {
    const [first] = decoded.problems
    throw refuseSetting(`${row.path}.${first?.field} ${first?.message}`)
  }
  const entries = Object.entries(decoded.target).filter(
    ([field, value]) => field !== 'kind' && value !== null,
  )
  const isSecret = ([field]: readonly [string, unknown]): boolean => secretNames.has(field)
  const secrets = entries
    .filter(isSecret)
    .map(([field, value]) => [field, new Secret(String(value))] as const)
  const shown = entries.filter((entry) => !isSecret(entry))
  return { name, namespace, kind, shown: Object.fromEntries(shown), secrets: Object.fromEntries(secrets) }
}

/** Whether a secret field refers to a file, a variable or Vault. Its value is checked when it is used. */
function isReference(
  row: SettingNode,
  field: string,
  values: Readonly<Record<string, unknown>>,
  secretNames: ReadonlySet<string>,
): boolean {
  const value = values[field]
  if (!secretNames.has(field) || typeof value !== 'string') return false
  const reference = parseReference(value)
  if (reference === undefined)
    throw refuseSetting(
      `${row.path}.${field} must be the secret itself, file:<path>, env:<NAME> or vault:<path>#<key>`,
    )
  return reference.kind !== 'itself'
}

/** For `redrive settings`. Never shows a secret. */
export function formatAlertChannels(channels: readonly ChannelSetting[]): string {
  return JSON.stringify(
    channels.map(({ name, namespace, kind, shown, secrets }) => ({
      name,
      namespace,
      kind,
      ...shown,
      ...Object.fromEntries(Object.entries(secrets).map(([field, secret]) => [field, showReference(secret)])),
    })),
  )
}

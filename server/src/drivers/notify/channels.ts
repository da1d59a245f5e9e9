/**
 * The channels of a server: those of redrive.yaml, and those that people create through the API. A channel of
 * the configuration hides a channel of the API with the same name.
 */
import {
  type ChannelConfig,
  type ChannelKind,
  type ChannelTarget,
  decodeTarget,
  type FieldProblem,
  type FieldValues,
  isChannelKind,
  listFields,
  splitTarget,
} from '../../core/alerts/channel.ts'
import type { ConfiguredChannel } from '../../core/alerts/configured-channel.ts'
import type { Clock } from '../../core/time/instant.ts'
import type { Attribution, Engine } from '../../engine/engine.ts'
import { KnownError } from '../../errors.ts'
import type { StoredAlertConfig } from '../../storage/contract/alerts.ts'
import type { AuditEntry, WriteAudit } from '../../storage/contract/audit.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'

export const channelSources = ['configuration', 'api'] as const

/** A channel without its secrets. `secretFields`: the secret fields that it has. */
export type ListedChannel = Readonly<{
  name: string
  namespace: string
  kind: ChannelKind
  source: (typeof channelSources)[number]
  fields: FieldValues
  secretFields: readonly string[]
  /** 0: it is not in the store. */
  version: number
}>

export interface AlertChannels {
  /** In byte order of their names. */
  list(): Promise<readonly ListedChannel[]>
  get(name: string): Promise<ListedChannel | null>
  /** With its secrets. Rejects if they cannot be read. */
  find(name: string): Promise<ChannelConfig | null>
  /** Creates or replaces a channel. Rejects with ALERT_CONFIG_CHANGED if another request did so, too. */
  put(channel: ChannelConfig, attribution: Attribution): Promise<void>
  remove(channel: ListedChannel, attribution: Attribution): Promise<void>
}

export type ChannelParts<S> = Readonly<{
  configured: readonly ConfiguredChannel<S>[]
  /** Called at each use, so that a rotated secret is noticed. */
  readSecret(secret: S): Promise<string>
  storage: () => Pick<StoreReads, 'listAlertConfigs' | 'getAlertConfig'>
  engine: () => Pick<Engine, 'write'>
  clock: Clock
}>

export const channelsMax = 500

export function createChannels<S>(parts: ChannelParts<S>): AlertChannels {
  const { storage, engine, clock, readSecret } = parts
  const configured = new Map(parts.configured.map((channel) => [channel.name, channel]))
  const getStored = (name: string) => storage().getAlertConfig('channel', name)
  const refuseConfigured = (name: string): void => {
    if (!configured.has(name)) return
    throw new KnownError('ALERT_CHANNEL_CONFIGURED', `channel ${name} is part of the configuration`)
  }
  const createAudit = (
    action: string,
    { name, namespace, kind, fields }: Pick<ListedChannel, 'name' | 'namespace' | 'kind' | 'fields'>,
    attribution: Attribution,
  ): WriteAudit => {
    const details = { kind, ...fields }
    const target = `alert-channel/${name}`
    const entry: AuditEntry = { ...attribution, namespace, at: clock.now(), action, target, details }
    return { op: 'audit', entries: [entry] }
  }
  return {
    list: async () => {
      const stored = (await storage().listAlertConfigs({ kind: 'channel' })).flatMap(
        (config) => listStored(config) ?? [],
      )
      const own = [...configured.values()].map(listConfigured)
      const visible = stored.filter(({ name }) => !configured.has(name))
      return [...own, ...visible].toSorted((a, b) => (a.name < b.name ? -1 : 1))
    },
    get: async (name) => {
      const own = configured.get(name)
      if (own !== undefined) return listConfigured(own)
      const stored = await getStored(name)
      return stored === null ? null : listStored(stored)
    },
    find: async (name) => {
      const own = configured.get(name)
      if (own !== undefined) return resolveChannel(own, readSecret)
      const stored = await getStored(name)
      return stored === null ? null : decodeStored(stored)
    },
    put: async ({ name, namespace, target }, attribution) => {
      refuseConfigured(name)
      const { shown, secrets } = splitTarget(target)
      const { kind } = target
      const version = (await getStored(name))?.version ?? 0
      const config = { kind: 'channel', name, namespace, version } as const
      const document = { kind, ...shown }
      const secret = JSON.stringify(secrets)
      const action = version === 0 ? 'alert-channel.create' : 'alert-channel.change'
      await engine().write([
        { op: 'put-alert-config', ...config, document, secret, countMax: channelsMax },
        createAudit(action, { name, namespace, kind, fields: shown }, attribution),
      ])
    },
    remove: async (channel, attribution) => {
      const { name, version } = channel
      refuseConfigured(name)
      await engine().write([
        { op: 'delete-alert-config', kind: 'channel', name, version },
        createAudit('alert-channel.delete', channel, attribution),
      ])
    },
  }
}

function listConfigured<S>({ name, namespace, kind, shown, secrets }: ConfiguredChannel<S>): ListedChannel {
  const secretFields = Object.keys(secrets)
  return { name, namespace, kind, source: 'configuration', fields: shown, secretFields, version: 0 }
}

/** Null: the channel was stored by a newer version and cannot be read. */
function listStored({ name, namespace, version, document, secret }: StoredAlertConfig): ListedChannel | null {
  const { kind, ...values } = document
  if (!isChannelKind(kind)) return null
  const fields = Object.fromEntries(
    listFields(kind).flatMap((field) =>
      field.isSecret || values[field.name] === undefined ? [] : [[field.name, values[field.name]]],
    ),
  )
  const secretFields = Object.keys(readSecrets(secret))
  return { name, namespace, kind, source: 'api', fields, secretFields, version }
}

async function resolveChannel<S>(
  { name, namespace, kind, shown, secrets }: ConfiguredChannel<S>,
  readSecret: (secret: S) => Promise<string>,
): Promise<ChannelConfig> {
  const values: Record<string, unknown> = { ...shown }
  for (const [field, secret] of Object.entries(secrets)) values[field] = await readSecret(secret)
  return { name, namespace, target: requireTarget(name, kind, values) }
}

function decodeStored({ name, namespace, document, secret }: StoredAlertConfig): ChannelConfig {
  const { kind, ...shown } = document
  if (!isChannelKind(kind)) throw createInvalidError(name, [{ field: 'kind', message: 'is unknown' }])
  return { name, namespace, target: requireTarget(name, kind, { ...shown, ...readSecrets(secret) }) }
}

function readSecrets(secret: string | null): FieldValues {
  const value: unknown = JSON.parse(secret ?? '{}')
  return typeof value === 'object' && value !== null ? (value as FieldValues) : {}
}

function requireTarget(name: string, kind: ChannelKind, values: FieldValues): ChannelTarget {
  const decoded = decodeTarget(kind, values)
  if ('target' in decoded) return decoded.target
  throw createInvalidError(name, decoded.problems)
}

function createInvalidError(name: string, problems: readonly FieldProblem[]): KnownError {
  const text = problems.map(({ field, message }) => `${field} ${message}`).join('; ')
  return new KnownError('ALERT_CHANNEL_INVALID', `channel ${name} cannot be used: ${text}`)
}

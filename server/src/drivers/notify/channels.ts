/** Where the driver finds channels: in the configuration of this server, and in the store. */
import {
  type ChannelConfig,
  type ChannelKind,
  type ChannelTarget,
  decodeTarget,
  type FieldProblem,
  type FieldValues,
  isChannelKind,
  splitTarget,
} from '../../core/alerts/channel.ts'
import { KnownError } from '../../errors.ts'
import type { StoredAlertConfig } from '../../storage/contract/alerts.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'

/** A channel of redrive.yaml. `secrets` are the secret fields, which may be references. */
export type ConfiguredChannel<S> = Readonly<{
  name: string
  namespace: string
  kind: ChannelKind
  shown: FieldValues
  secrets: Readonly<Record<string, S>>
}>

export interface ChannelSource {
  /** With its secrets. Null: there is no such channel. Rejects if its secrets cannot be read. */
  find(name: string): Promise<ChannelConfig | null>
}

export type ChannelSourceParts<S> = Readonly<{
  configured: readonly ConfiguredChannel<S>[]
  readSecret(secret: S): Promise<string>
  storage: () => Pick<StoreReads, 'getAlertConfig'>
}>

/** The configuration has precedence. Its secrets are read at each use, so that a rotated one is noticed. */
export function createChannelSource<S>(parts: ChannelSourceParts<S>): ChannelSource {
  const configured = new Map(parts.configured.map((channel) => [channel.name, channel]))
  return {
    find: async (name) => {
      const own = configured.get(name)
      if (own !== undefined) return resolveChannel(own, parts.readSecret)
      const stored = await parts.storage().getAlertConfig('channel', name)
      return stored === null ? null : decodeStoredChannel(stored)
    },
  }
}

async function resolveChannel<S>(
  { name, namespace, kind, shown, secrets }: ConfiguredChannel<S>,
  readSecret: (secret: S) => Promise<string>,
): Promise<ChannelConfig> {
  const values: Record<string, unknown> = { ...shown }
  for (const [field, secret] of Object.entries(secrets)) values[field] = await readSecret(secret)
  return { name, namespace, target: requireTarget(name, kind, values) }
}

export function decodeStoredChannel(stored: StoredAlertConfig): ChannelConfig {
  const { name, namespace, document, secret } = stored
  const { kind, ...shown } = document
  if (!isChannelKind(kind)) throw createInvalidError(name, [{ field: 'kind', message: 'is unknown' }])
  const secrets: unknown = JSON.parse(secret ?? '{}')
  return { name, namespace, target: requireTarget(name, kind, { ...shown, ...(secrets as FieldValues) }) }
}

/** The document and the secret of a channel in the store. */
export function encodeStoredChannel(
  target: ChannelTarget,
): Readonly<{ document: Readonly<Record<string, unknown>>; secret: string }> {
  const { shown, secrets } = splitTarget(target)
  return { document: { kind: target.kind, ...shown }, secret: JSON.stringify(secrets) }
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

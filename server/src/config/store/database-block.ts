/**
 * The block `database:` names a PostgreSQL store by its parts, as the configuration of many services does. It
 * becomes the settings `store`, `store.password` and `postgres.connections_max`, so that only this file knows
 * it.
 */
import { KnownError } from '../../errors.ts'
import { formatHost, type StoreHost, setHosts } from '../../storage/contract/hosts.ts'
import { describeOrigin, type Origin, type RawSetting } from '../settings/origin.ts'
import type { ReadSettings } from '../settings/read-settings.ts'
import type { SettingName, Settings, settingsTable } from '../settings/settings.ts'

type Loaded = ReadSettings<typeof settingsTable>

/** The block that describes the service itself. It has no meaning for Redrive. */
const serviceBlock = 'app'

/** Removes the lines of a settings file that are not used: the block `app:`, and an empty password. */
export function removeUnusedLines(givens: readonly RawSetting[]): RawSetting[] {
  return givens.filter(
    ({ name, text }) =>
      name !== serviceBlock &&
      !name.startsWith(`${serviceBlock}.`) &&
      !(name === 'database.password' && text === ''),
  )
}

const storeParts = ['database.port', 'database.name', 'database.user', 'database.ssl_mode'] as const

/** Applies `database.*` to the settings that it stands for. */
export function applyDatabaseBlock(loaded: Loaded): Loaded {
  return applyConnectionsMax(applyStore(loaded))
}

function applyStore(loaded: Loaded): Loaded {
  const { settings } = loaded
  const host = settings['database.host']
  if (host === undefined) {
    const part = [...storeParts, 'database.password' as const].find((name) => settings[name] !== undefined)
    if (part !== undefined)
      throw refuse(`${part} is set, but database.host is not: set both, or use store instead`)
    return loaded
  }
  if (!isChosen(loaded, 'database.host', 'store')) return loaded
  const name = settings['database.name']
  if (name === undefined) throw refuse('database.host is set, but database.name is not')
  const password = settings['database.password']
  if (password !== undefined && settings['store.password'] !== undefined)
    throw refuse('database.password and store.password are both set: use one of them')
  return {
    settings: {
      ...settings,
      store: formatUrl(settings, host, name),
      ...(password !== undefined && { 'store.password': password }),
    },
    origins: {
      ...loaded.origins,
      store: loaded.origins['database.host'],
      ...(password !== undefined && { 'store.password': loaded.origins['database.password'] }),
    },
  }
}

function formatUrl(settings: Settings, host: string, name: string): string {
  const user = settings['database.user']
  const port = settings['database.port'] ?? 5432
  const hosts = host.split(',').map((each) => ({ host: each.replace(/^\[|\]$/g, ''), port }))
  const [first] = hosts
  const url =
    first === undefined || hosts.some((each) => !isHost(each))
      ? null
      : URL.parse(`postgres://${formatHost(first)}/${encodeURIComponent(name)}`)
  if (url === null) throw refuse(`database.host is ${JSON.stringify(host)}, which is not a host`)
  if (hosts.length > 1) setHosts(url, hosts)
  if (user !== undefined) url.username = encodeURIComponent(user)
  const sslMode = settings['database.ssl_mode']
  if (sslMode !== undefined) url.searchParams.set('sslmode', sslMode)
  return url.href
}

function isHost(each: StoreHost): boolean {
  return !/[\s/?#@\\]/.test(each.host) && URL.canParse(`postgres://${formatHost(each)}/`)
}

function applyConnectionsMax(loaded: Loaded): Loaded {
  const max = loaded.settings['database.max_open_conns']
  if (max === undefined || !isChosen(loaded, 'database.max_open_conns', 'postgres.connections_max'))
    return loaded
  return {
    settings: { ...loaded.settings, 'postgres.connections_max': max },
    origins: { ...loaded.origins, 'postgres.connections_max': loaded.origins['database.max_open_conns'] },
  }
}

const ranks: Readonly<Record<Origin['kind'], number>> = { default: 0, file: 1, environment: 2, flag: 3 }

/**
 * True if the setting of the block applies, false if the other one comes from a source with precedence. Two
 * settings of one source contradict each other.
 */
function isChosen({ origins }: Loaded, block: SettingName, other: SettingName): boolean {
  const [blockRank, otherRank] = [ranks[origins[block].kind], ranks[origins[other].kind]]
  if (blockRank !== otherRank) return blockRank > otherRank
  throw refuse(
    `${block} (from ${describeOrigin(origins[block])}) and ${other} (from ${describeOrigin(origins[other])}) ` +
      'are both set: use one of them',
  )
}

function refuse(message: string): KnownError {
  return new KnownError('SETTING_INVALID', message)
}

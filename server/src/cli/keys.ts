import type { LoadedSettings } from '../config/settings/load-settings.ts'
import { systemNamespace } from '../core/items/queue.ts'
import { KnownError } from '../errors.ts'
import { type AccessTarget, createServerTarget, type ListedKey, withStoreTarget } from './access-target.ts'
import type { Context } from './context.ts'
import { exitCodes } from './exit-codes.ts'
import { toTable } from './table.ts'

/** `server`: act on a running server, with `key`. Otherwise on the store. */
export type TargetOptions = Readonly<{ server?: string; key?: string }>
export type CreateKeyOptions = TargetOptions &
  Readonly<{ user?: string; role?: readonly string[]; scope?: string; expires?: string; name?: string }>

const serverVariable = 'REDRIVE_SERVER'
const keyVariable = 'REDRIVE_KEY'

/** Prints the new key alone on standard output, so that a script can store it. */
export function createKey(
  { settings }: LoadedSettings,
  context: Context,
  options: CreateKeyOptions,
): Promise<number> {
  const { user, role = [], scope = '', name = 'command line' } = options
  if (user === undefined)
    throw new KnownError('SETTING_INVALID', '--user is missing: name the user of the key')
  const expiresAt = readExpiry(options.expires)
  return withTarget(settings, context, options, async (target) => {
    const users = await target.listUsers()
    const userId = users.find(({ username }) => username === user)?.id ?? (await target.createUser(user))
    for (const text of role) {
      const [roleName = '', namespace = systemNamespace] = text.split(':').toReversed()
      await target.bind(namespace, roleName, userId)
    }
    const { id, key } = await target.createKey({ userId, name, scope, expiresAt })
    context.report(`created key ${id} of user ${user}; it is shown only once`)
    const bindings = (await target.listBindings()).get(userId) ?? []
    if (bindings.length === 0) {
      context.report(`user ${user} has no role yet: add --role Viewer, Operator or Admin`)
    }
    context.print(key)
    return exitCodes.ok
  })
}

export function listKeys(
  { settings }: LoadedSettings,
  context: Context,
  options: TargetOptions,
): Promise<number> {
  return withTarget(settings, context, options, async (target) => {
    const users = new Map((await target.listUsers()).map(({ id, username }) => [id, username]))
    const rows = (await target.listKeys()).map((key) => [
      key.id,
      key.prefix,
      users.get(key.userId) ?? key.userId,
      key.scope || 'all',
      key.expiresAt || 'never',
      key.lastUsedAt || 'never',
      key.name,
    ])
    for (const line of toTable([
      ['id', 'prefix', 'user', 'namespaces', 'expires', 'last used', 'name'],
      ...rows,
    ]))
      context.print(line)
    return exitCodes.ok
  })
}

/** Takes an id or a prefix of a key. */
export function revokeKey(
  { settings }: LoadedSettings,
  context: Context,
  options: TargetOptions,
  given: string,
): Promise<number> {
  return withTarget(settings, context, options, async (target) => {
    const found = (await target.listKeys()).filter(({ id, prefix }) => id === given || prefix === given)
    const [key] = found as [ListedKey | undefined]
    if (key === undefined) throw new KnownError('API_KEY_NOT_FOUND', `there is no key ${given}`)
    if (found.length > 1) {
      throw new KnownError('BAD_REQUEST', `${found.length} keys have the prefix ${given}; name the id`)
    }
    await target.deleteKey(key.id)
    context.report(`revoked key ${key.id} (${key.prefix})`)
    return exitCodes.ok
  })
}

/** Prints who may do what: every user with its roles and the number of its keys. */
export function showAccess(
  { settings }: LoadedSettings,
  context: Context,
  options: TargetOptions,
): Promise<number> {
  return withTarget(settings, context, options, async (target) => {
    const bindings = await target.listBindings()
    const keys = Map.groupBy(await target.listKeys(), ({ userId }) => userId)
    const rows = (await target.listUsers()).map(({ id, username }) => [
      username,
      (bindings.get(id) ?? ['no role']).join(', '),
      String(keys.get(id)?.length ?? 0),
    ])
    context.print(`access: ${await target.readMode()}`)
    for (const line of toTable([['user', 'roles', 'keys'], ...rows])) context.print(line)
    return exitCodes.ok
  })
}

function withTarget(
  settings: LoadedSettings['settings'],
  context: Context,
  { server = context.environment[serverVariable], key = context.environment[keyVariable] }: TargetOptions,
  work: (target: AccessTarget) => Promise<number>,
): Promise<number> {
  if (server === undefined) return withStoreTarget(settings, context, work)
  return work(createServerTarget(server, key ?? ''))
}

/** `90d` or a time. */
function readExpiry(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const [, days] = /^(\d{1,5})d$/.exec(text) ?? []
  const at = days === undefined ? Date.parse(text) : Date.now() + Number(days) * 86_400_000
  if (Number.isNaN(at)) {
    throw new KnownError('SETTING_INVALID', `--expires is ${text}; it must be days such as 90d, or a time`)
  }
  return new Date(at).toISOString()
}

/**
 * The settings `webhooks.producers`, `webhooks.channels` and `webhooks.consumers`: lists of maps. In
 * redrive.yaml they are written as such; a flag or an environment variable has the same structure as JSON.
 */
import type { Delivery } from '../core/items/queue.ts'
import { findTextFault } from '../core/text/storable-text.ts'
import type { ConfiguredConsumer, ConfiguredEntity } from '../core/webhook/configured.ts'
import { Secret } from './secrets/secret.ts'
import { parseReference, showReference } from './secrets/secret-reference.ts'
import { refuseSetting, SettingNode } from './settings/setting-node.ts'

const textMax = 255

export function parseConfiguredEntities(text: string, name: string): readonly ConfiguredEntity<Secret>[] {
  const rows = SettingNode.parse(text, name, 'a list of maps').items()
  for (const row of rows) row.only(['id', 'name', 'token'])
  return requireUnique(name, rows.map(readEntity), ({ id }) => id)
}

export function parseConfiguredConsumers(text: string, name: string): readonly ConfiguredConsumer<Secret>[] {
  const rows = SettingNode.parse(text, name, 'a list of maps').items()
  const consumers = rows.map((row) => {
    row.only(['id', 'name', 'token', 'channel', 'callback_url', 'type'])
    const type = readType(row.at('type'))
    return {
      ...readEntity(row),
      channel: readId(row.at('channel')),
      callbackUrl: readCallbackUrl(row.at('callback_url')),
      ...(type !== undefined && { type }),
    }
  })
  return requireUnique(name, consumers, ({ channel, id }) => JSON.stringify([channel, id]))
}

/** For `redrive settings`. Never shows a token. */
export function formatConfigured(rows: readonly ConfiguredEntity<Secret>[]): string {
  return JSON.stringify(
    rows.map(({ token, ...row }) => ({
      ...row,
      ...(token !== undefined && { token: showReference(token) }),
    })),
  )
}

function readEntity(row: SettingNode): ConfiguredEntity<Secret> {
  const [name, token] = [row.at('name').text(), row.at('token').text()]
  if (token !== undefined && parseReference(token) === undefined)
    throw refuseSetting(
      `${row.path}.token must be the token itself, file:<path>, env:<NAME> or vault:<path>#<key>`,
    )
  return {
    id: readId(row.at('id')),
    ...(name !== undefined && { name }),
    ...(token !== undefined && { token: new Secret(token) }),
  }
}

function readId(node: SettingNode): string {
  const id = node.required()
  if (id.length > textMax || findTextFault(id) !== undefined)
    throw refuseSetting(`${node.path} has ${id.length} characters; the limit is ${textMax}`)
  return id
}

function readCallbackUrl(node: SettingNode): string {
  const text = node.required()
  const url = URL.parse(text)
  if (url === null || url.host === '') throw refuseSetting(`${node.path} is not an absolute URL`)
  return text
}

function readType(node: SettingNode): Delivery | undefined {
  const text = node.text()
  if (text === undefined || text === 'push' || text === 'pull') return text
  throw refuseSetting(`${node.path} is ${JSON.stringify(text)}; it must be push or pull`)
}

function requireUnique<T>(name: string, rows: readonly T[], keyOf: (row: T) => string): readonly T[] {
  const seen = new Set<string>()
  for (const row of rows) {
    const key = keyOf(row)
    if (seen.has(key)) throw refuseSetting(`${name} has ${key} twice`)
    seen.add(key)
  }
  return rows
}

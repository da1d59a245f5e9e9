/**
 * The parts that a request handler can reach, limited to the namespaces in which the caller has the
 * permission of the route. It is the only place where the API applies namespaces: handlers use the parts of
 * their context and cannot see anything else.
 */
import { intersectScope, type Scope } from '../../core/access/scope.ts'
import { systemNamespace } from '../../core/items/queue.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import { redactStorage } from '../../storage/scope/redacted-storage.ts'
import { scopeStorage } from '../../storage/scope/scoped-storage.ts'
import type { ApiContext } from '../context.ts'
import type { Caller } from './caller.ts'
import { contentPermissions } from './content-permission.ts'
import type { Permission } from './permission.ts'

/** `also`: a second permission that the request needs, in the same namespaces. */
export function scopeContext(
  context: ApiContext,
  caller: Caller,
  permission: Permission,
  also?: Permission,
): ApiContext {
  if (permission === 'public') return context
  const namespaces = caller.listNamespaces(permission)
  const others = also === undefined ? null : caller.listNamespaces(also)
  const both = others === null ? namespaces : intersectScope(others, namespaces ?? undefined)
  return hideContent(scopeNamespaces(context, both), caller)
}

function hideContent(context: ApiContext, caller: Caller): ApiContext {
  const lists = contentPermissions.map((permission) => caller.listNamespaces(permission))
  if (lists.includes(null)) return context
  const readable = lists.flatMap((list) => list ?? [])
  const { storage, engine, letters, webhooks } = context
  return {
    ...context,
    storage: () => redactStorage(storage(), readable),
    engine: () => engine().readableIn(readable),
    letters: () => letters().readableIn(readable),
    webhooks: () => webhooks().within(redactStorage(storage(), readable)),
  }
}

function scopeNamespaces(context: ApiContext, namespaces: Scope): ApiContext {
  if (namespaces === null) return context
  const { storage, engine, letters, webhooks, metrics } = context
  return {
    ...context,
    storage: () => scopeStorage(storage(), namespaces),
    engine: () => engine().within(namespaces),
    letters: () => letters().within(namespaces),
    webhooks: () => webhooks().within(scopeStorage(storage(), namespaces)),
    ...(!namespaces.includes(systemNamespace) && { kafka: noKafka }),
    metrics: { ...metrics, render: async () => selectSeries(await metrics.render(), storage(), namespaces) },
  }
}

/** Kafka clusters belong to the namespace `_system`. */
const noKafka: ApiContext['kafka'] = {
  clusters: [],
  health: () => [],
  listFigures: () => [],
  listReaders: async () => [],
}

const queueLabel = /[{,]queue="((?:[^"\\]|\\.)*)"/

/** The series of the server, and of the queues in these namespaces. */
async function selectSeries(
  text: string,
  storage: StoreReads,
  namespaces: readonly string[],
): Promise<string> {
  const visible = scopeStorage(storage, namespaces)
  const known = new Map<string, boolean>()
  const lines: string[] = []
  const isKafkaShown = namespaces.includes(systemNamespace)
  for (const line of text.split('\n')) {
    if (!isKafkaShown && line.includes('kafka_consumer_lag')) continue
    const name = line.startsWith('#') ? undefined : queueLabel.exec(line)?.[1]
    if (name === undefined) {
      lines.push(line)
      continue
    }
    const isKnown = known.get(name) ?? (await visible.getQueue(unescapeLabel(name))) !== null
    known.set(name, isKnown)
    if (isKnown) lines.push(line)
  }
  return lines.join('\n')
}

function unescapeLabel(text: string): string {
  return text.replaceAll(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character))
}

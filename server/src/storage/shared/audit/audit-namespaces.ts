/**
 * The namespaces of audit rows. Commands on letters and queues do not name a namespace: the store finds it
 * from the target of each row, in the same transaction.
 */
import { systemNamespace } from '../../../core/items/queue.ts'
import type { AuditEntry } from '../../contract/audit.ts'

/** Targets whose namespace the store has to find: ids of letters, and names of queues. */
export type AuditTargets = Readonly<{ letterIds: readonly string[]; queues: readonly string[] }>

export function listTargets(entries: readonly AuditEntry[]): AuditTargets {
  const open = entries.filter(({ namespace }) => namespace === undefined)
  const targets = (kinds: RegExp) => [
    ...new Set(open.filter(({ action }) => kinds.test(action)).map(({ target }) => target)),
  ]
  return { letterIds: targets(/^letter\./), queues: targets(/^(queue|items|letters)\./) }
}

/** `found`: namespaces by target. */
export function addNamespaces(
  entries: readonly AuditEntry[],
  found: ReadonlyMap<string, string>,
): readonly AuditEntry[] {
  return entries.map((entry) => {
    const namespace = entry.namespace ?? found.get(entry.target)
    return namespace === undefined || namespace === systemNamespace ? entry : { ...entry, namespace }
  })
}

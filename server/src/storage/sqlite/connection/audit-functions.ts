/** The SQL function that the migration of the audit chains needs: SQLite has no SHA-256. */
import type { DatabaseSync } from 'node:sqlite'
import { firstHash, hashAuditRow, rowsBeforeChains } from '../../shared/audit/audit-chain.ts'

/** An aggregate: the hash over the audit rows from before the chains, in the order of the aggregate. */
export function addAuditFunctions(connection: DatabaseSync): void {
  connection.aggregate('audit_chain_hash', {
    start: () => `0 ${firstHash}`,
    varargs: true,
    step: (head: string, ...columns) => {
      const [id, at, ...texts] = columns
      const [actor, action, target, reason, requestId, namespace, address, keyPrefix, details] =
        texts.map(String)
      const [count = '', previous = ''] = head.split(' ')
      const link = { chain: rowsBeforeChains, position: Number(count) + 1 }
      const stored = {
        id,
        at,
        actor,
        action,
        target,
        reason,
        requestId,
        namespace,
        address,
        keyPrefix,
        details,
      }
      return `${link.position} ${hashAuditRow(previous, link, stored as never)}`
    },
    result: (head: string) => head.split(' ')[1] ?? firstHash,
  })
}

import type { AuditHead, AuditLink, AuditStore, ChainedAuditRow } from '../../contract/audit.ts'
import { AuditChecker, type AuditFault } from './audit-chain.ts'

const rowsPerRead = 1_000

export type AuditCheck = Readonly<{
  checked: number
  faults: readonly AuditFault[]
  heads: readonly AuditHead[]
}>

/**
 * Checks all rows that exist now against their chains. Reads in pages, so servers can keep writing.
 * `expected`: links that an earlier check reported. They show that no row at the end was removed together
 * with its head.
 */
export async function verifyAudit(
  store: Pick<AuditStore, 'readAuditChain' | 'readAuditHeads'>,
  expected: readonly AuditLink[] = [],
): Promise<AuditCheck> {
  // The heads come first: every row up to them is committed and visible to all later reads.
  const heads = await store.readAuditHeads()
  const checker = new AuditChecker(heads, expected)
  for await (const row of readAuditLog(store)) checker.add(row)
  const faults = checker.finish()
  return { checked: checker.checked, faults, heads }
}

/** All rows, oldest first. */
export async function* readAuditLog(
  store: Pick<AuditStore, 'readAuditChain'>,
): AsyncGenerator<ChainedAuditRow> {
  for (let afterId = 0; ; ) {
    const rows = await store.readAuditChain({ afterId, countMax: rowsPerRead })
    yield* rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < rowsPerRead) return
    afterId = last.id
  }
}

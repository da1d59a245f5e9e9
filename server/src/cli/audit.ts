import { formatInstant } from '../api/http/wire/wire-time.ts'
import type { LoadedSettings } from '../config/settings/load-settings.ts'
import { maskStore } from '../config/store/store-text.ts'
import { KnownError } from '../errors.ts'
import type { AuditLink, ChainedAuditRow } from '../storage/contract/audit.ts'
import { rowsBeforeChains } from '../storage/shared/audit/audit-chain.ts'
import { readAuditLog, verifyAudit } from '../storage/shared/audit/verify-audit.ts'
import type { Context } from './context.ts'
import { exitCodes } from './exit-codes.ts'
import { withStorageToRead } from './with-storage.ts'

/**
 * Checks every row of the audit log against its chain. Changes nothing, and works while servers run.
 * `expected`: heads that an earlier run printed.
 */
export async function verifyAuditLog(
  { settings }: LoadedSettings,
  context: Context,
  expected: readonly string[],
): Promise<number> {
  const links = expected.map(parseLink)
  return withStorageToRead(settings, context, async (storage) => {
    const { checked, faults, heads } = await verifyAudit(storage, links)
    for (const { sentence } of faults) context.print(sentence)
    if (faults.length > 0) return exitCodes.failed
    for (const { chain, position, hash } of heads)
      if (chain !== rowsBeforeChains) context.print(`head ${chain}:${position}:${hash}`)
    context.print(`all ${checked} rows of the audit log in ${maskStore(settings.store)} are in their chains`)
    return exitCodes.ok
  })
}

function parseLink(text: string): AuditLink {
  const [, chain, position, hash] = /^([0-9]{1,9}):([0-9]{1,15}):([0-9a-f]{64})$/.exec(text) ?? []
  if (chain === undefined || position === undefined || hash === undefined)
    throw new KnownError(
      'SETTING_INVALID',
      `--expect is ${text.slice(0, 100)}; it must be a head that redrive audit verify printed, such as 1:42:9f86…`,
    )
  return { chain: Number(chain), position: Number(position), hash }
}

/** Prints every row of the audit log as a line of JSON, oldest first, with its link. */
export async function exportAuditLog({ settings }: LoadedSettings, context: Context): Promise<number> {
  return withStorageToRead(settings, context, async (storage) => {
    for await (const row of readAuditLog(storage)) context.print(JSON.stringify(toLine(row)))
    return exitCodes.ok
  })
}

function toLine({ stored, link }: ChainedAuditRow) {
  return {
    id: stored.id,
    at: formatInstant(stored.at),
    actor: stored.actor,
    key_prefix: stored.keyPrefix,
    address: stored.address,
    namespace: stored.namespace,
    action: stored.action,
    target: stored.target,
    reason: stored.reason,
    request_id: stored.requestId,
    details: JSON.parse(stored.details) as unknown,
    chain: link?.chain ?? null,
    position: link?.position ?? null,
    hash: link?.hash ?? null,
  }
}

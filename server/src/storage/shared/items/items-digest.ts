/** The digest of the items of an idempotent produce. Equal items have equal digests. */
import { createHash, type Hash } from 'node:crypto'
import { isTraceHeader } from '../../../core/trace/trace-headers.ts'
import { KnownError } from '../../../errors.ts'
import type { NewItem, Produce } from '../../contract/items.ts'

export function digestItems(items: readonly NewItem[]): string {
  const hash = createHash('sha256')
  for (const item of items) digestItem(hash, item)
  return hash.digest('base64url')
}

function digestItem(hash: Hash, item: NewItem): void {
  const { payload, key = null } = item
  // A repeated call belongs to another span, so its trace is not part of what is compared.
  const headers = (item.headers ?? []).filter(([name]) => !isTraceHeader(name))
  const { kind = '', encoding = '', reference = '', priority = 0, attemptsMax = 0 } = item
  const { availableAt = null, expireDeadline = null } = item
  const facts = [
    kind,
    encoding,
    reference,
    priority,
    attemptsMax,
    availableAt,
    expireDeadline,
    // The bytes of an item follow without separators. Their lengths show where each value ends.
    payload.length,
    key === null ? null : key.length,
    headers.map(([name, value]) => [name, value === null ? null : value.length]),
  ]
  hash.update(`${JSON.stringify(facts)}\n`).update(payload)
  if (key !== null) hash.update(key)
  for (const [, value] of headers) if (value !== null) hash.update(value)
}

/** Refuses a repeated key whose items differ from those of the first command. */
export function checkSameItems(command: Produce, digest: string, firstDigest: string): void {
  if (digest === firstDigest) return
  throw new KnownError(
    'IDEMPOTENCY_KEY_REUSED',
    `key ${command.once?.key} was used in queue ${command.queue} for other items`,
  )
}

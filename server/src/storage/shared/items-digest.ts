import { createHash } from 'node:crypto'
import { KnownError } from '../../errors.ts'
import type { NewItem, Produce } from '../contract/items.ts'

/** What a key stands for: the same items, however they were written down, have the same digest. */
export function digestItems(items: readonly NewItem[]): string {
  const hash = createHash('sha256')
  for (const item of items) {
    const { payload, key = null, headers = [] } = item
    const facts = [
      item.kind ?? '',
      item.encoding ?? '',
      item.reference ?? '',
      item.priority ?? 0,
      item.attemptsMax ?? 0,
      item.availableAt ?? null,
      item.expireDeadline ?? null,
      // With the lengths nothing can pass for a part of its neighbour.
      payload.length,
      key === null ? null : key.length,
      headers.map(([name, value]) => [name, value === null ? null : value.length]),
    ]
    hash.update(`${JSON.stringify(facts)}\n`).update(payload)
    if (key !== null) hash.update(key)
    for (const [, value] of headers) if (value !== null) hash.update(value)
  }
  return hash.digest('base64url')
}

export function checkSameItems(command: Produce, digest: string, before: unknown): void {
  if (digest === before) return
  throw new KnownError(
    'IDEMPOTENCY_KEY_REUSED',
    `key ${command.once?.key} was used in queue ${command.queue} for other items`,
  )
}

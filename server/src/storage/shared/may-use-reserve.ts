import type { Command } from '../contract/storage.ts'

/**
 * Commands that work on a full disk, with the space that a store reserves for them. They free space, or
 * change rows without adding new ones for long.
 */
const settlingOps: ReadonlySet<string> = new Set<Command['op']>([
  'lease',
  'unlease',
  'complete',
  'retry',
  'extend',
  'advance',
  'correct-leases',
  'delete',
  'clear',
  'discard',
  'delete-queue',
  'cancel-queue-deletion',
  'purge-archive',
  'skip-letters',
  'put-campaign',
  'acquire-lock',
  'renew-lock',
  'release-lock',
  'fence',
])

/** Whether the write may use the reserved space of a full disk. */
export function mayUseReserve(write: readonly Readonly<{ op: string }>[]): boolean {
  return write.every(({ op }) => settlingOps.has(op))
}

/**
 * The archive: items that ended, out of the way of live work. letters.ts has the commands to restore and
 * purge letters.
 */

import type { EndedState } from '../../core/dead-letters/letter-class.ts'
import type { QueueName } from '../../core/ids/ids.ts'
import type { Item } from '../../core/items/item.ts'
import type { Instant } from '../../core/time/instant.ts'
import type { AuditContext } from './audit.ts'
import type { ItemsQuery } from './items.ts'

export type ArchiveCommand = Archive

export type ArchiveResults = {
  archive: { archived: number; isMore: boolean }
}

export interface ArchiveStore {
  listArchive(query: ItemsQuery): Promise<readonly ArchivedItem[]>
}

export type ArchivedItem = Readonly<{ item: Item; archivedAt: Instant }>

/**
 * Moves items that ended before `endedBefore` to the archive, oldest first. One statement moves them: exactly
 * the deleted rows are inserted. Rows that another transaction has locked stay for the next run.
 *
 * The command ends after `countMax` items, or with the item whose payload reaches `stepBytesMax`
 * (shared/byte-budget.ts). `isMore`: it ended at one of these limits, so there can be more items to move.
 */
export type Archive = Readonly<{
  op: 'archive'
  queue: QueueName
  /**
   * The states to archive; default: done, dead and discarded. `by-class`: the states that the queue's letter
   * class lets leave automatically. The class is read in the transaction, so that a change of the class is
   * effective once it is answered. The audit row has the states that were archived.
   */
  states?: readonly EndedState[] | 'by-class'
  endedBefore: Instant
  countMax: number
  now: Instant
  audit?: AuditContext
}>

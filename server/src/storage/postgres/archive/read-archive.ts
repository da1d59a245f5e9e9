/** Reads archived letters by their ids. The search (storage/search) finds them by a filter. */
import type { ArchivedItem } from '../../contract/archive.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeTexts, encodeUuids } from '../connection/encode-arrays.ts'
import { toItem } from '../items/rows.ts'
import { isKsuid } from '../letters/letter-rows.ts'
import { createReadById, wholeColumns } from '../letters/read-letters.ts'

export const readArchived = createReadById(
  'read-archived-letters',
  'archive',
  `${wholeColumns}, f.archived_at`,
)

export async function getArchivedLetters(
  connections: Connections,
  letterIds: readonly string[],
): Promise<ArchivedItem[]> {
  const ids = letterIds.filter(isKsuid)
  if (ids.length === 0) return []
  const rows = await connections.read(readArchived, [encodeUuids(ids), encodeTexts(ids)])
  return rows.map((row) => ({
    item: toItem(row, readText(row, 'queue_name')),
    archivedAt: readNumber(row, 'archived_at'),
  }))
}

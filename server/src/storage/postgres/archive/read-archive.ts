/** Reads archived letters by their ids, or newest first. search-archive.ts finds them by a filter. */
import { isStorableText } from '../../../core/storable-text.ts'
import type { ArchivedItem } from '../../contract/archive.ts'
import type { ArchivedLettersQuery, ListedArchived } from '../../contract/letters.ts'
import { readNumber, readText } from '../../shared/row-values.ts'
import type { Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { texts, uuids } from '../connection/encode-arrays.ts'
import { listedColumns, toItem, toListedLetter } from '../items/rows.ts'
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
  const rows = await connections.read(readArchived, [uuids(ids), texts(ids)])
  return rows.map((row) => ({
    item: toItem(row, readText(row, 'queue_name')),
    archivedAt: readNumber(row, 'archived_at'),
  }))
}

/** Reads a page of each queue and merges them. `$2`, `$3`: the cursor. */
export const readArchivePage: Statement = {
  text: `select p.*, q.name as queue_name from redrive.queues q cross join lateral (
      select ${listedColumns}, f.archived_at from redrive.archive f
      where f.queue_id = q.id and f.origin is not null and (f.archived_at, f.id) < ($2::int8, $3::text)
      order by f.archived_at desc, f.id desc limit $4
    ) p
    where q.is_sourced and ($1::text[] is null or q.name = any ($1::text[]))
    order by p.archived_at desc, p.id desc limit $4`,
}

/** Sorts after every id. */
const idAfterAll = 'z'.repeat(28)

export async function listArchivedLetters(
  connections: Connections,
  query: ArchivedLettersQuery,
): Promise<ListedArchived[]> {
  const { queues, after, countMax } = query
  const rows = await connections.read(readArchivePage, [
    queues === undefined ? null : texts(queues.filter(isStorableText)),
    after?.archivedAt ?? Number.MAX_SAFE_INTEGER,
    after?.id ?? idAfterAll,
    countMax,
  ])
  return rows.map((row) => ({
    item: toListedLetter(row, readText(row, 'queue_name')),
    archivedAt: readNumber(row, 'archived_at'),
  }))
}

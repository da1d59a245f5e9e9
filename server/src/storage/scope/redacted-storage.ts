/**
 * A store as a caller sees it who may read the content of items in some namespaces only. Items of other
 * namespaces are listed without payload, key and secret headers, and cannot be searched by their content.
 */
import { redactContent } from '../../core/access/redaction.ts'
import { intersectScope } from '../../core/access/scope.ts'
import type { QueueName } from '../../core/ids/ids.ts'
import type { Item } from '../../core/items/item.ts'
import { overlay } from '../../core/overlay.ts'
import { KnownError } from '../../errors.ts'
import type { LetterFilter } from '../contract/letters.ts'
import type { StoreReads } from '../contract/storage.ts'

/** `visible`: all reads of the caller. `readable`: the namespaces whose content the caller may read. */
export function redactStorage(visible: StoreReads, readable: readonly string[]): StoreReads {
  const redact = createRedactor(visible, readable)
  return overlay(visible, {
    listItems: async (query) => redact(await visible.listItems(query)),
    listArchive: async (query) => redactArchived(await visible.listArchive(query), redact),
    getLetters: async (letterIds, bytes) => redact(await visible.getLetters(letterIds, bytes)),
    getArchivedLetters: async (letterIds) =>
      redactArchived(await visible.getArchivedLetters(letterIds), redact),
    listEdits: async (letterId) => {
      const edits = await visible.listEdits(letterId)
      const found = await visible.readLetterNamespaces([letterId])
      const isReadable = found.some(({ namespace }) => readable.includes(namespace))
      return isReadable ? edits : edits.map((edit) => redactContent(edit))
    },
    findRanges: async (query) => {
      const ranges = await visible.findRanges({
        ...query,
        filter: limitContentSearch(query.filter, readable),
      })
      return {
        scan: async (bounds) => {
          const page = await ranges.scan(bounds)
          const items = await redact(page.found.map(({ item }) => item))
          const found = page.found.map((each, index) => ({ ...each, item: items[index] ?? each.item }))
          return { ...page, found }
        },
      }
    },
  })
}

type Redact = <I extends Item>(items: readonly I[]) => Promise<readonly I[]>

function createRedactor(visible: StoreReads, readable: readonly string[]): Redact {
  return async (items) => {
    const names = [...new Set(items.map(({ queue }) => queue))]
    const queues = await Promise.all(names.map((name) => visible.getQueue(name)))
    const isReadable = (name: QueueName): boolean =>
      readable.includes(queues[names.indexOf(name)]?.namespace ?? '')
    return items.map((item) => (isReadable(item.queue) ? item : redactContent(item)))
  }
}

async function redactArchived<A extends Readonly<{ item: Item }>>(
  archived: readonly A[],
  redact: Redact,
): Promise<readonly A[]> {
  const items = await redact(archived.map(({ item }) => item))
  return archived.map((each, index) => ({ ...each, item: items[index] ?? each.item }))
}

/** A search by content tells what the content is, so it finds only letters that the caller may read. */
export function limitContentSearch(filter: LetterFilter, readable: readonly string[]): LetterFilter {
  const { payloadText, json, key, header } = filter
  if ([payloadText, json, key, header].every((condition) => condition === undefined)) return filter
  if (readable.length === 0) {
    throw new KnownError(
      'ACCESS_DENIED',
      'a search by payload, key or header needs the permission payload.read',
    )
  }
  const namespaces = filter.namespaces === undefined ? readable : intersectScope(readable, filter.namespaces)
  return { ...filter, namespaces }
}

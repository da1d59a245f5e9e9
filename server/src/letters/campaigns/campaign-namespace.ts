import { KnownError } from '../../errors.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import type { CampaignSpec } from '../letters.ts'

/** The namespace of all letters that the campaign can select; empty: there are several. */
export async function findNamespace(
  storage: Pick<StoreReads, 'getQueue' | 'readLetterNamespaces'>,
  { selection }: Pick<CampaignSpec, 'selection'>,
): Promise<string> {
  const found = new Set(await listNamespaces(storage, selection))
  const [first = ''] = found
  return found.size === 1 ? first : ''
}

async function listNamespaces(
  storage: Pick<StoreReads, 'getQueue' | 'readLetterNamespaces'>,
  selection: CampaignSpec['selection'],
): Promise<readonly string[]> {
  if ('letterIds' in selection)
    return (await storage.readLetterNamespaces(selection.letterIds)).map(({ namespace }) => namespace)
  const { queues, namespaces } = selection.filter
  if (queues === undefined) return namespaces ?? []
  const found = await Promise.all(queues.map((name) => storage.getQueue(name)))
  return found.flatMap((queue) => (queue === null ? [] : [queue.namespace]))
}

/**
 * A caller who may act in some namespaces only could not see a campaign with letters of several namespaces.
 */
export function checkOneNamespace(
  { targetNamespaces }: Pick<CampaignSpec, 'targetNamespaces'>,
  namespace: string,
): void {
  if (targetNamespaces === undefined || namespace !== '') return
  throw new KnownError(
    'BAD_REQUEST',
    `the selection has no single namespace; limit it to one of ${targetNamespaces.join(', ')}, or to its queues`,
  )
}

/** Letters as a caller sees them who may act in some namespaces only: see storage/scope/scoped-storage.ts. */
import { intersectScope } from '../core/access/scope.ts'
import type { LetterId } from '../core/ids.ts'
import { KnownError } from '../errors.ts'
import type { LetterFilter } from '../storage/contract/letters.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { createLetterNotFoundError } from '../storage/shared/letter-not-found.ts'
import { createQueueNotFoundError } from '../storage/shared/queue-checks.ts'
import type { CampaignSpec, Campaigns, Letters } from './letters.ts'
import { createSearch } from './search.ts'
import { createUndo } from './undo.ts'

export type ScopedLettersParts = Readonly<{
  /** The letters of all namespaces. */
  letters: Letters
  /** The store and the campaigns, which show only these namespaces. */
  storage: StoreReads
  campaigns: Campaigns
  namespaces: readonly string[]
}>

type Actions = Pick<Letters, 'redrive' | 'edit' | 'discard' | 'restore' | 'cancelRedrives'>

export function createScopedLetters(parts: ScopedLettersParts): Letters {
  const { letters, storage, campaigns, namespaces } = parts
  const actions = scopeActions(parts)
  return {
    ...createSearch(storage),
    ...actions,
    ...createUndo(storage, actions),
    capture: async (queue, captured, attribution) => {
      if ((await storage.getQueue(queue)) === null) throw createQueueNotFoundError(queue)
      return letters.capture(queue, captured, attribution)
    },
    campaigns: scopeCampaigns(campaigns, storage, namespaces),
    within: (inner) => letters.within(intersectScope(namespaces, inner)),
    // Passes belong to the server, not to a caller.
    passes: letters.passes,
    runRetention: (options) => letters.runRetention(options),
    previewRetention: () => letters.previewRetention(),
    close: () => letters.close(),
  }
}

/** Letters of other namespaces get the result of an unknown id. */
function scopeActions({ letters, storage, namespaces }: ScopedLettersParts): Actions {
  const select = async (letterIds: readonly LetterId[]): Promise<ReadonlySet<LetterId>> =>
    new Set((await storage.readLetterNamespaces(letterIds)).map(({ letterId }) => letterId))
  const inScope = async <Result extends Readonly<{ letterId: LetterId }>>(
    letterIds: readonly LetterId[],
    act: (visible: readonly LetterId[]) => Promise<readonly Result[]>,
  ): Promise<readonly Result[]> => {
    const visible = await select(letterIds)
    // An id that is not visible is given in a form that no letter has.
    const results = await act(letterIds.map((id) => (visible.has(id) ? id : '')))
    return results.map((result, index) => ({ ...result, letterId: letterIds[index] ?? result.letterId }))
  }
  return {
    redrive: (letterIds, how, attribution) => {
      const targetNamespaces = intersectScope(namespaces, how.targetNamespaces)
      return inScope(letterIds, (ids) => letters.redrive(ids, { ...how, targetNamespaces }, attribution))
    },
    edit: async (letterId, changes, attribution) => {
      if (!(await select([letterId])).has(letterId)) throw createLetterNotFoundError(letterId)
      return letters.edit(letterId, changes, attribution)
    },
    discard: (letterIds, attribution) => inScope(letterIds, (ids) => letters.discard(ids, attribution)),
    restore: (letterIds, attribution, campaignId) =>
      inScope(letterIds, (ids) => letters.restore(ids, attribution, campaignId)),
    cancelRedrives: (letterIds, attribution) =>
      inScope(letterIds, (ids) => letters.cancelRedrives(ids, attribution)),
  }
}

function scopeCampaigns(campaigns: Campaigns, storage: StoreReads, namespaces: readonly string[]): Campaigns {
  /**
   * Named letters of other namespaces are left out, like unknown ones: nobody can find out which they are.
   */
  const scopeSpec = async (spec: CampaignSpec): Promise<CampaignSpec> => {
    const targetNamespaces = intersectScope(namespaces, spec.targetNamespaces)
    const { selection } = spec
    if ('filter' in selection) {
      const filter: LetterFilter = {
        ...selection.filter,
        namespaces: intersectScope(namespaces, selection.filter.namespaces),
      }
      return { ...spec, targetNamespaces, selection: { filter } }
    }
    const found = await createSearch(storage).resolveIds(selection.letterIds)
    const letterIds = found.flatMap((id) => id ?? [])
    if (letterIds.length === 0 && selection.letterIds.length > 0)
      throw new KnownError('BAD_REQUEST', 'the selection names no letter that exists')
    return { ...spec, targetNamespaces, selection: { letterIds } }
  }
  const check = async (id: string): Promise<void> => {
    if ((await storage.getCampaign(id)) === null)
      throw new KnownError('CAMPAIGN_NOT_FOUND', `there is no campaign ${id}`)
  }
  return {
    preview: async (spec, options) => campaigns.preview(await scopeSpec(spec), options),
    create: async (spec, attribution) => campaigns.create(await scopeSpec(spec), attribution),
    get: (id) => campaigns.get(id),
    readCauses: (campaign) => campaigns.readCauses(campaign),
    list: (query) => campaigns.list(query),
    listLetters: (id, query) => campaigns.listLetters(id, query),
    adjust: async (id, changes, attribution) => {
      await check(id)
      return campaigns.adjust(id, changes, attribution)
    },
    pause: async (id, attribution) => {
      await check(id)
      return campaigns.pause(id, attribution)
    },
    resume: async (id, attribution) => {
      await check(id)
      return campaigns.resume(id, attribution)
    },
    cancel: async (id, attribution) => {
      await check(id)
      return campaigns.cancel(id, attribution)
    },
    watch: (id, signal) => campaigns.watch(id, signal),
  }
}

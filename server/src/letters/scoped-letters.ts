/** Letters as a caller sees them who may act in some namespaces only: see storage/scope/scoped-storage.ts. */
import { intersectScope } from '../core/access/scope.ts'
import type { GroupId, LetterId } from '../core/ids/ids.ts'
import { KnownError } from '../errors.ts'
import type { GroupFacts, LetterFilter } from '../storage/contract/letters.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { createQueueNotFoundError } from '../storage/shared/items/queue-checks.ts'
import { createLetterNotFoundError } from '../storage/shared/letters/letter-not-found.ts'
import type { GroupJobs } from './grouping/group-jobs.ts'
import { previewRules } from './grouping/preview-rules.ts'
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
    ...scopeGroupActions(parts),
    capture: async (queue, captured, attribution) => {
      if ((await storage.getQueue(queue)) === null) throw createQueueNotFoundError(queue)
      return letters.capture(queue, captured, attribution)
    },
    campaigns: scopeCampaigns(campaigns, storage, namespaces),
    within: (inner) => letters.within(intersectScope(namespaces, inner)),
    groupJobs: scopeGroupJobs(parts),
    previewRules: (queue, rules, lettersMax) => previewRules(storage, queue, rules, lettersMax),
    readableIn: (readable) => letters.within(namespaces).readableIn(readable),
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

function scopeGroupJobs({ letters, storage }: ScopedLettersParts): GroupJobs {
  const { groupJobs } = letters
  const check = async (id: string): Promise<void> => {
    if ((await storage.getGroupJob(id)) === null)
      throw new KnownError('GROUP_JOB_NOT_FOUND', `there is no job ${id}`)
  }
  return {
    regroup: async (queue, attribution) => {
      if ((await storage.getQueue(queue)) === null) throw createQueueNotFoundError(queue)
      return groupJobs.regroup(queue, attribution)
    },
    split: async (groupId, filter, title, attribution) => {
      const found = await storage.listGroups({
        filter: { groupIds: [groupId] },
        countMax: 1,
        isEmptyToo: true,
      })
      if (found.length === 0) throw new KnownError('GROUP_NOT_FOUND', `group ${groupId} does not exist`)
      return groupJobs.split(groupId, filter, title, attribution)
    },
    get: async (id) => ((await storage.getGroupJob(id)) === null ? null : groupJobs.get(id)),
    list: async (query) => {
      const visible = new Set((await storage.listGroupJobs(query)).map(({ id }) => id))
      return (await groupJobs.list(query)).filter(({ id }) => visible.has(id))
    },
    cancel: async (id, attribution) => {
      await check(id)
      return groupJobs.cancel(id, attribution)
    },
  }
}

type GroupActions = Pick<Letters, 'mergeGroups' | 'mergeCauses' | 'pinTitle' | 'decideGroup'>

/**
 * A cause spans namespaces. A merge changes it everywhere, so its groups must all be visible to the caller.
 */
function scopeGroupActions({ letters, storage }: ScopedLettersParts): GroupActions {
  const checkCauses = async (causes: readonly string[]): Promise<void> => {
    const filter = { causes }
    const visible = await storage.listGroups({ filter, countMax: groupsCompared, isEmptyToo: true })
    const all = await letters.listGroups({ filter, countMax: groupsCompared, isEmptyToo: true })
    if (all.length > visible.length)
      throw new KnownError(
        'ACCESS_DENIED',
        'a cause has letters in other namespaces, and a merge changes it there too',
      )
  }
  const readGroup = async (id: GroupId): Promise<GroupFacts> => {
    const [group] = await storage.listGroups({ filter: { groupIds: [id] }, countMax: 1, isEmptyToo: true })
    if (group === undefined) throw new KnownError('GROUP_NOT_FOUND', `group ${id} does not exist`)
    return group
  }
  const readKey = async (causeKey: string): Promise<string> => {
    const key = await storage.findCauseKey(causeKey)
    if (key === null)
      throw new KnownError('CAUSE_NOT_FOUND', `cause ${JSON.stringify(causeKey)} does not exist`)
    return key
  }
  return {
    mergeGroups: async (into, groupIds, attribution) => {
      const causes = new Set<string>()
      for (const id of [into, ...groupIds]) causes.add((await readGroup(id)).causeKey)
      await checkCauses([...causes])
      return letters.mergeGroups(into, groupIds, attribution)
    },
    mergeCauses: async (into, causeKeys, attribution) => {
      const causes = new Set<string>()
      for (const key of [into, ...causeKeys]) causes.add(await readKey(key))
      await checkCauses([...causes])
      return letters.mergeCauses(into, causeKeys, attribution)
    },
    decideGroup: async (groupId, decision, attribution) => {
      await readGroup(groupId)
      return letters.decideGroup(groupId, decision, attribution)
    },
    pinTitle: async (subject, title, attribution) => {
      if ('groupId' in subject) {
        await readGroup(subject.groupId)
        return letters.pinTitle(subject, title, attribution)
      }
      const causes = [await readKey(subject.causeKey)]
      await checkCauses(causes)
      return letters.pinTitle(subject, title, attribution)
    },
  }
}

const groupsCompared = 10_000

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

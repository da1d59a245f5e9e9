/**
 * Campaigns and jobs as a caller sees them who may read the content of letters in some namespaces only: they
 * select by content only letters whose content the caller may read, and their filters are shown without
 * content.
 */
import { overlay } from '../core/overlay.ts'
import type { LetterFilter } from '../storage/contract/letters.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { hasErrorTexts, redactFilter } from '../storage/scope/redacted-filter.ts'
import {
  hasHiddenErrorTexts,
  limitContentSearch,
  limitTextSearch,
} from '../storage/scope/redacted-storage.ts'
import type { GroupJob, GroupJobs } from './grouping/group-jobs.ts'
import type { Campaign, CampaignSpec, Campaigns } from './letters.ts'

export function limitCampaigns(
  campaigns: Campaigns,
  visible: StoreReads,
  readable: readonly string[],
): Campaigns {
  const { limit, hide } = createFilters(visible, readable)
  const limitSpec = async (spec: CampaignSpec): Promise<CampaignSpec> => {
    if (!('filter' in spec.selection)) return spec
    return { ...spec, selection: { filter: await limit(spec.selection.filter) } }
  }
  const show = async (campaign: Campaign): Promise<Campaign> => {
    const { namespace, spec } = campaign
    if (readable.includes(namespace) || !('filter' in spec.selection)) return campaign
    return { ...campaign, spec: { ...spec, selection: { filter: await hide(spec.selection.filter) } } }
  }
  return overlay(campaigns, {
    preview: async (spec, options) => campaigns.preview(await limitSpec(spec), options),
    create: async (spec, attribution) => show(await campaigns.create(await limitSpec(spec), attribution)),
    get: async (id) => {
      const found = await campaigns.get(id)
      return found === null ? null : show(found)
    },
    list: async (query) => Promise.all((await campaigns.list(query)).map(show)),
    adjust: async (id, changes, attribution) => show(await campaigns.adjust(id, changes, attribution)),
    pause: async (id, attribution) => show(await campaigns.pause(id, attribution)),
    resume: async (id, attribution) => show(await campaigns.resume(id, attribution)),
    cancel: async (id, attribution) => show(await campaigns.cancel(id, attribution)),
    watch: async function* (id, signal) {
      for await (const campaign of campaigns.watch(id, signal)) yield await show(campaign)
    },
  })
}

export function limitGroupJobs(jobs: GroupJobs, visible: StoreReads, readable: readonly string[]): GroupJobs {
  const { limit, hide } = createFilters(visible, readable)
  const show = async (job: GroupJob): Promise<GroupJob> => {
    const queue = await visible.getQueue(job.queue)
    if (queue !== null && readable.includes(queue.namespace)) return job
    return { ...job, filter: await hide(job.filter) }
  }
  return overlay(jobs, {
    regroup: async (queue, attribution) => show(await jobs.regroup(queue, attribution)),
    split: async (groupId, filter, title, attribution) =>
      show(await jobs.split(groupId, await limit(filter), title, attribution)),
    get: async (id) => {
      const found = await jobs.get(id)
      return found === null ? null : show(found)
    },
    list: async (query) => Promise.all((await jobs.list(query)).map(show)),
    cancel: async (id, attribution) => show(await jobs.cancel(id, attribution)),
  })
}

function createFilters(visible: StoreReads, readable: readonly string[]) {
  return {
    limit: async (filter: LetterFilter): Promise<LetterFilter> =>
      limitTextSearch(limitContentSearch(filter, readable), visible, readable),
    hide: async (filter: LetterFilter): Promise<LetterFilter> => {
      const areHidden = hasErrorTexts(filter) && (await hasHiddenErrorTexts(filter, visible, readable))
      return redactFilter(filter, areHidden)
    },
  }
}

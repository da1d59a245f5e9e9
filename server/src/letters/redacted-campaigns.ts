import { overlay } from '../core/overlay.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { limitContentSearch, limitTextSearch } from '../storage/scope/redacted-storage.ts'
import type { CampaignSpec, Campaigns } from './letters.ts'

/** Campaigns that select by content select only letters whose content the caller may read. */
export function limitCampaigns(
  campaigns: Campaigns,
  visible: StoreReads,
  readable: readonly string[],
): Campaigns {
  const limit = async (spec: CampaignSpec): Promise<CampaignSpec> => {
    if (!('filter' in spec.selection)) return spec
    const filter = limitContentSearch(spec.selection.filter, readable)
    return { ...spec, selection: { filter: await limitTextSearch(filter, visible, readable) } }
  }
  return overlay(campaigns, {
    preview: async (spec, options) => campaigns.preview(await limit(spec), options),
    create: async (spec, attribution) => campaigns.create(await limit(spec), attribution),
  })
}

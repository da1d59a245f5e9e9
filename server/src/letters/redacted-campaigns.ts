import { overlay } from '../core/overlay.ts'
import { limitContentSearch } from '../storage/scope/redacted-storage.ts'
import type { CampaignSpec, Campaigns } from './letters.ts'

/** Campaigns that select by content select only letters whose content the caller may read. */
export function limitCampaigns(campaigns: Campaigns, readable: readonly string[]): Campaigns {
  const limit = (spec: CampaignSpec): CampaignSpec =>
    'filter' in spec.selection
      ? { ...spec, selection: { filter: limitContentSearch(spec.selection.filter, readable) } }
      : spec
  return overlay(campaigns, {
    preview: async (spec, options) => campaigns.preview(limit(spec), options),
    create: async (spec, attribution) => campaigns.create(limit(spec), attribution),
  })
}

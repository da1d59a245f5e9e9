import { KnownError } from '../../../errors.ts'
import type { Campaign, Letters } from '../../../letters/letters.ts'

export async function findCampaign({ campaigns }: Pick<Letters, 'campaigns'>, id: string): Promise<Campaign> {
  const campaign = await campaigns.get(id)
  if (campaign !== null) return campaign
  throw new KnownError('CAMPAIGN_NOT_FOUND', `campaign ${JSON.stringify(id)} does not exist`)
}

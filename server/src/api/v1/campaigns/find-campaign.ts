import { systemNamespace } from '../../../core/items/queue.ts'
import { KnownError } from '../../../errors.ts'
import type { Campaign, CampaignSpec, Letters } from '../../../letters/letters.ts'
import { type Caller, requirePermission } from '../../http/caller.ts'
import type { Permission } from '../../http/permission.ts'

export async function findCampaign({ campaigns }: Pick<Letters, 'campaigns'>, id: string): Promise<Campaign> {
  const campaign = await campaigns.get(id)
  if (campaign !== null) return campaign
  throw new KnownError('CAMPAIGN_NOT_FOUND', `campaign ${JSON.stringify(id)} does not exist`)
}

/** The permission to do to one letter what the campaign does to all of its letters. */
export function findActionPermission(action: CampaignSpec['action'] | undefined): Permission {
  return action === 'discard' ? 'letter.discard' : 'letter.redrive'
}

/** Throws ACCESS_DENIED if the caller may not do what the campaign does. */
export function requireAction(caller: Caller, { namespace, spec }: Campaign): void {
  requirePermission(caller, findActionPermission(spec.action), namespace === '' ? systemNamespace : namespace)
}

import type { CampaignLetterState } from '../../contract/campaigns.ts'
import type { RedriveRefusal } from '../../contract/letters.ts'

/**
 * Refuses to send a letter of a campaign that was already sent or skipped, so that a repeated step sends
 * nothing twice. `state`: null or undefined for a letter without a campaign.
 */
export function refuseRepeatedSend(
  state: CampaignLetterState | null | undefined,
): RedriveRefusal | undefined {
  switch (state) {
    case null:
    case undefined:
    case 'pending':
      return undefined
    case 'sent':
      return 'redriving'
    case 'resolved':
    case 'discarded':
      return state
    default:
      return 'missing'
  }
}

import type { CampaignLetterState } from '../contract/campaigns.ts'
import type { RedriveRefusal } from '../contract/letters.ts'

/** A step that is repeated sends nothing twice: what had its turn has it no more. */
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

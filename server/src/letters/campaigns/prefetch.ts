/**
 * Reads the next letters of a campaign while the previous ones are being sent, so that the store is busy
 * between two steps. The step that sends the letters checks them again, so outdated reads do no harm.
 */
import type { CampaignId } from '../../core/ids/ids.ts'
import type { CampaignLetter } from '../../storage/contract/campaigns.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import { countFitting } from '../step-size.ts'

export interface LetterPrefetch {
  /** The next pending letters after a place, fewer if they are large; null: from the first one. */
  takeNext(
    campaignId: CampaignId,
    afterPosition: number | null,
    countMax: number,
  ): Promise<readonly CampaignLetter[]>
  /** Starts reading the letters that `next` will return. Never fails: at worst, `next` reads them itself. */
  readAhead(campaignId: CampaignId, afterPosition: number, countMax: number): void
  /** Forgets all other campaigns. */
  keepOnly(campaignIds: ReadonlySet<CampaignId>): void
}

type Prefetched = Readonly<{
  afterPosition: number
  countMax: number
  letters: Promise<readonly CampaignLetter[] | undefined>
}>

export function createLetterPrefetch(
  storage: Pick<StoreReads, 'listCampaignLetters' | 'prefetchLetters' | 'readPayloadSizes'>,
): LetterPrefetch {
  const prefetched = new Map<string, Prefetched>()

  const list = async (campaignId: CampaignId, afterPosition: number | null, countMax: number) => {
    const letters = await storage.listCampaignLetters({
      campaignId,
      states: ['pending'],
      ...(afterPosition !== null && { afterPosition }),
      countMax,
    })
    const ids = letters.map(({ letterId }) => letterId)
    return letters.slice(0, await countFitting(storage, ids))
  }
  const readAndPrefetch = async (campaignId: CampaignId, afterPosition: number, countMax: number) => {
    const letters = await list(campaignId, afterPosition, countMax)
    await storage.prefetchLetters(letters.map(({ letterId }) => letterId))
    return letters
  }
  return {
    takeNext: async (campaignId, afterPosition, countMax) => {
      const ahead = prefetched.get(campaignId)
      prefetched.delete(campaignId)
      const isWanted = ahead?.afterPosition === afterPosition && ahead.countMax === countMax
      return (isWanted ? await ahead.letters : undefined) ?? list(campaignId, afterPosition, countMax)
    },
    readAhead: (campaignId, afterPosition, countMax) => {
      const letters = readAndPrefetch(campaignId, afterPosition, countMax).catch(() => undefined)
      prefetched.set(campaignId, { afterPosition, countMax, letters })
    },
    keepOnly: (campaignIds) => {
      for (const id of prefetched.keys()) if (!campaignIds.has(id)) prefetched.delete(id)
    },
  }
}

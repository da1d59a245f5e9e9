/**
 * Whose turn it is. The next letters are read while those before them are being sent: the store is not left waiting
 * between two steps. What was read ahead is checked by the step that sends it, as if it had been read just now.
 */
import type { CampaignLetter } from '../../storage/contract/campaigns.ts'
import type { Storage } from '../../storage/contract/storage.ts'
import { countTogether } from '../step-size.ts'

export interface TurnsAhead {
  /** The next pending ones after that place, of large ones fewer; null: from the first on. */
  next(campaignId: string, afterPlace: number | null, countMax: number): Promise<readonly CampaignLetter[]>
  /** They will be asked for next. Waits for nothing, and never fails: at worst they are read when they are asked for. */
  readAhead(campaignId: string, afterPlace: number, countMax: number): void
  /** Nobody asks for those of any other campaign. */
  keepOnly(campaignIds: ReadonlySet<string>): void
}

type Ahead = Readonly<{
  afterPlace: number
  countMax: number
  letters: Promise<readonly CampaignLetter[] | undefined>
}>

export function createTurnsAhead(
  storage: Pick<Storage, 'listCampaignLetters' | 'foreseeRedrive' | 'weighLetters'>,
): TurnsAhead {
  const aheads = new Map<string, Ahead>()

  const list = async (campaignId: string, afterPlace: number | null, countMax: number) => {
    const letters = await storage.listCampaignLetters({
      campaignId,
      states: ['pending'],
      ...(afterPlace !== null && { afterPlace }),
      countMax,
    })
    const ids = letters.map(({ letterId }) => letterId)
    return letters.slice(0, await countTogether(storage, ids))
  }
  const foresee = async (campaignId: string, afterPlace: number, countMax: number) => {
    const letters = await list(campaignId, afterPlace, countMax)
    await storage.foreseeRedrive(letters.map(({ letterId }) => letterId))
    return letters
  }
  return {
    next: async (campaignId, afterPlace, countMax) => {
      const ahead = aheads.get(campaignId)
      aheads.delete(campaignId)
      const isWanted = ahead?.afterPlace === afterPlace && ahead.countMax === countMax
      return (isWanted ? await ahead.letters : undefined) ?? list(campaignId, afterPlace, countMax)
    },
    readAhead: (campaignId, afterPlace, countMax) => {
      const letters = foresee(campaignId, afterPlace, countMax).catch(() => undefined)
      aheads.set(campaignId, { afterPlace, countMax, letters })
    },
    keepOnly: (campaignIds) => {
      for (const id of aheads.keys()) if (!campaignIds.has(id)) aheads.delete(id)
    },
  }
}

/** The causes of the letters that failed again in a campaign, or whose outcome is unknown, for its report. */
import type { GroupId, LetterId } from '../../core/ids/ids.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import type { Campaign, CampaignCauses } from '../letters.ts'

/** Letters of a campaign whose causes are counted. */
const lettersMax = 1_000
const lettersPerRead = 500
const causesMax = 20

type Cause = { groupId: GroupId; count: number; message: string; sampleId: LetterId }

/** By the present failure of each letter: it may have been redriven again since. */
export async function readCauses(
  storage: Pick<StoreReads, 'listCampaignLetters' | 'getLetters' | 'listGroups'>,
  { id, counts }: Pick<Campaign, 'id' | 'counts'>,
): Promise<CampaignCauses> {
  if (counts.failed + counts.unknown === 0) return { causes: [], examinedCount: 0 }
  const query = { campaignId: id, states: ['failed', 'unknown'], countMax: lettersMax } as const
  const letterIds = (await storage.listCampaignLetters(query)).map(({ letterId }) => letterId)
  const found = new Map<GroupId, Cause>()
  for (let start = 0; start < letterIds.length; start += lettersPerRead) {
    const letters = await storage.getLetters(letterIds.slice(start, start + lettersPerRead), 'head')
    for (const { groupId, failure, rootId } of letters) {
      if (groupId === null) continue
      const cause = found.get(groupId)
      if (cause !== undefined) cause.count++
      else found.set(groupId, { groupId, count: 1, message: failure?.message ?? '', sampleId: rootId })
    }
  }
  const largest = [...found.values()].sort((a, b) => b.count - a.count).slice(0, causesMax)
  const groupIds = largest.map(({ groupId }) => groupId)
  const groups = await storage.listGroups({ filter: { groupIds }, countMax: causesMax, isEmptyToo: true })
  const byId = new Map(groups.map((group) => [group.id, group]))
  const causes = largest.map((cause) => {
    const { title = '', errorCode = '', errorClass = '' } = byId.get(cause.groupId) ?? {}
    return { ...cause, title, errorCode, errorClass }
  })
  return { causes, examinedCount: letterIds.length }
}

/** Takes back what was done to many letters: restores discarded letters, and cancels redrives. */
import type { CampaignId, LetterId } from '../core/ids/ids.ts'
import type { LetterFilter } from '../storage/contract/letters.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { searchAll } from '../storage/search/search-letters.ts'
import { createSelectionChangedError } from './campaigns/preview.ts'
import type { Letters, UndoDone, UndoLimits } from './letters.ts'
import { stepLettersMax } from './parts.ts'

type Undo = Pick<Letters, 'restoreSelected' | 'cancelCampaignRedrives'>
type Result = Readonly<{ letterId: LetterId; refusal: string | null }>
type Change = (letterIds: readonly LetterId[]) => Promise<readonly Result[]>
/** Ids in pages, so that a large selection is never in memory as a whole. */
type Pages = (pageMax: number) => AsyncGenerator<readonly LetterId[], void, undefined>

const refusalsKept = 1_000

export function createUndo(
  storage: StoreReads,
  actions: Pick<Letters, 'restore' | 'cancelRedrives'>,
  elapsedMs: () => number = () => performance.now(),
): Undo {
  return {
    restoreSelected: (selection, limits, attribution) => {
      if ('filter' in selection) {
        const filter: LetterFilter = { ...selection.filter, states: ['discarded'] }
        return changeAll(selectByFilter(storage, filter), limits, elapsedMs, (ids) =>
          actions.restore(ids, attribution),
        )
      }
      const { campaignId } = selection
      const pages = selectOfCampaign(storage, campaignId, 'discarded')
      return changeAll(pages, limits, elapsedMs, (ids) => actions.restore(ids, attribution, campaignId))
    },
    cancelCampaignRedrives: (campaignId, limits, attribution) =>
      changeAll(selectOfCampaign(storage, campaignId, 'sent'), limits, elapsedMs, (ids) =>
        actions.cancelRedrives(ids, attribution),
      ),
  }
}

async function changeAll(
  pages: Pages,
  { countMax, expectedCount, msMax }: UndoLimits,
  elapsedMs: () => number,
  change: Change,
): Promise<UndoDone> {
  if (expectedCount !== null) await checkCount(pages, countMax, expectedCount)
  const deadline = elapsedMs() + msMax
  const refusals: Result[] = []
  let [taken, changed] = [0, 0]
  const describe = (isComplete: boolean): UndoDone => ({
    changed,
    refused: taken - changed,
    refusals: refusals
      .slice(0, refusalsKept)
      .map(({ letterId, refusal }) => ({ letterId, refusal: refusal ?? '' })),
    isComplete,
  })
  for await (const page of pages(stepLettersMax)) {
    if (taken >= countMax) break
    if (elapsedMs() >= deadline) return describe(false)
    const ids = page.slice(0, countMax - taken)
    const refused = (await change(ids)).filter(({ refusal }) => refusal !== null)
    taken += ids.length
    changed += ids.length - refused.length
    if (refusals.length < refusalsKept) refusals.push(...refused)
  }
  return describe(true)
}

/** Counts no further than one letter more than expected. */
async function checkCount(pages: Pages, countMax: number, expectedCount: number): Promise<void> {
  let count = 0
  for await (const page of pages(stepLettersMax)) {
    count += page.length
    if (count >= countMax || count > expectedCount) break
  }
  const selected = Math.min(count, countMax)
  if (selected !== expectedCount)
    throw createSelectionChangedError(selected, expectedCount, selected <= expectedCount)
}

function selectByFilter(storage: StoreReads, filter: LetterFilter): Pages {
  return async function* (pageMax) {
    const query = {
      filter,
      order: 'deadLetteredAt',
      isDescending: false,
      countMax: pageMax,
      bytes: 'none',
    } as const
    for await (const { found } of searchAll(storage, query)) yield found.map(({ item }) => item.rootId)
  }
}

function selectOfCampaign(storage: StoreReads, campaignId: CampaignId, state: 'discarded' | 'sent'): Pages {
  return async function* (pageMax) {
    for (let afterPosition = 0; ; ) {
      const query = { campaignId, states: [state], afterPosition, countMax: pageMax }
      const page = await storage.listCampaignLetters(query)
      yield page.map(({ letterId }) => letterId)
      const last = page.at(-1)
      if (last === undefined || page.length < pageMax) return
      afterPosition = last.position
    }
  }
}

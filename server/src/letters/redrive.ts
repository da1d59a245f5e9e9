/**
 * Actions on letters that are named by id. Each step is one transaction, which also writes the audit rows.
 */
import type { LetterId } from '../core/ids/ids.ts'
import type { Clock } from '../core/time/instant.ts'
import type { Engine } from '../engine/engine.ts'
import { KnownError } from '../errors.ts'
import type {
  CancelRedriveResult,
  DiscardResult,
  LetterLocation,
  RedriveResult,
  RestoreResult,
} from '../storage/contract/letters.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { createAuditContext } from './audit.ts'
import { isRootId } from './letter-id.ts'
import type { Letters } from './letters.ts'
import { namedLettersMax, stepLettersMax } from './parts.ts'
import { countFitting } from './step-size.ts'

type LetterActions = Pick<Letters, 'redrive' | 'cancelRedrives' | 'edit' | 'discard' | 'restore'>

export function createLetterActions(
  parts: Readonly<{ storage: StoreReads; engine: Pick<Engine, 'write'>; clock: Clock }>,
): LetterActions {
  const { storage, engine, clock } = parts
  const together =
    (place: LetterLocation): Together =>
    (ids) =>
      countFitting(storage, ids, place)

  return {
    redrive: (letterIds, how, attribution) =>
      runInSteps<RedriveResult>(together('live'), letterIds, createNotRedriven, async (ids) => {
        const { target, edit, isDeadAllowed, isCapped, targetNamespaces } = how
        const [redriven] = await engine.write([
          {
            op: 'redrive',
            letters: ids.map((letterId) => ({ letterId, queue: target, edit })),
            isDeadAllowed,
            isCapped,
            ...(targetNamespaces !== undefined && { targetNamespaces }),
            actor: attribution.actor,
            now: clock.now(),
            audit: createAuditContext(clock, attribution, 'letter.redrive', { target, isDeadAllowed }),
          },
        ])
        return redriven
      }),
    cancelRedrives: (letterIds, attribution) =>
      runInSteps<CancelRedriveResult>(together('live'), letterIds, createNotCancelled, async (ids) => {
        const act = createAuditContext(clock, attribution, 'letter.cancel-redrive', {})
        const [cancelled] = await engine.write([
          { op: 'cancel-redrives', letterIds: ids, now: clock.now(), audit: act },
        ])
        return cancelled
      }),
    edit: async (letterId, changes, attribution) => {
      if (!isRootId(letterId))
        throw new KnownError(
          'LETTER_NOT_FOUND',
          `${JSON.stringify(letterId.slice(0, 50))} is not a letter id`,
        )
      const act = createAuditContext(clock, attribution, 'letter.edit', {})
      const [{ number }] = await engine.write([
        { op: 'edit-letter', letterId, ...changes, actor: attribution.actor, now: clock.now(), audit: act },
      ])
      return number
    },
    discard: (letterIds, attribution) =>
      runInSteps<DiscardResult>(together('live'), letterIds, createNotDiscarded, async (ids) => {
        const letters = ids.map((letterId) => ({ letterId }))
        const act = createAuditContext(clock, attribution, 'letter.discard', {})
        const [discarded] = await engine.write([
          { op: 'discard', letters, reason: attribution.reason, now: clock.now(), audit: act },
        ])
        return discarded
      }),
    restore: (letterIds, attribution, campaignId) =>
      runInSteps<RestoreResult>(together('archive'), letterIds, createNotRestored, async (ids) => {
        const ofCampaign = campaignId === undefined ? {} : { campaignId }
        const act = createAuditContext(clock, attribution, 'letter.restore', ofCampaign)
        const [restored] = await engine.write([
          { op: 'restore', letterIds: ids, ...ofCampaign, now: clock.now(), audit: act },
        ])
        return restored
      }),
  }
}

const createNotRedriven = (letterId: LetterId): RedriveResult => ({
  letterId,
  isStarted: false,
  refusal: 'missing',
})
const createNotCancelled = (letterId: LetterId): CancelRedriveResult => ({
  letterId,
  isCancelled: false,
  refusal: 'missing',
  target: null,
})
const createNotDiscarded = (letterId: LetterId): DiscardResult => ({
  letterId,
  isDiscarded: false,
  refusal: 'missing',
})
const createNotRestored = (letterId: LetterId): RestoreResult => ({
  letterId,
  isRestored: false,
  refusal: 'missing',
})

/** Returns how many of these letters, counted from the first, fit into one transaction. */
type Together = (ids: readonly string[]) => Promise<number>

/**
 * Returns results in the order of the ids. An id that is named twice is processed once and gets the same
 * result twice. If a step fails, earlier steps stay committed; a repeated call refuses their letters as in
 * progress.
 */
async function runInSteps<Result extends { readonly letterId: LetterId }>(
  together: Together,
  letterIds: readonly LetterId[],
  missing: (letterId: LetterId) => Result,
  step: (ids: readonly string[]) => Promise<readonly Result[]>,
): Promise<readonly Result[]> {
  if (letterIds.length > namedLettersMax) {
    throw new KnownError(
      'BAD_REQUEST',
      `the call names ${letterIds.length} letters; the limit is ${namedLettersMax}. Use a campaign for more`,
    )
  }
  // Filter out invalid ids first: the stores cannot even bind some of them.
  const ids = [...new Set(letterIds)].filter(isRootId)
  const results = new Map<string, Result>()
  for (let at = 0; at < ids.length; ) {
    const next = ids.slice(at, at + stepLettersMax)
    const count = await together(next)
    for (const result of await step(next.slice(0, count))) results.set(result.letterId, result)
    at += count
  }
  return letterIds.map((id) => results.get(id) ?? missing(id))
}

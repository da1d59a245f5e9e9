/**
 * Works on campaigns, one step at a time. A step is one transaction that holds the fence of the campaign's lock, the
 * new version of its document and what happens to the letters. So it happens whole or not at all, on
 * one server at a time, and not on a campaign that somebody paused or cancelled meanwhile.
 *
 * Killed at any point, what is in the store says what comes next: letters whose turn has come are not pending any
 * more, and the tokens they took are gone from the pace.
 *
 * Freezing is the one step of two transactions: how far it got is known only when the first is done. Killed between
 * them it is repeated from where it began, and passes over what is in the set already.
 */
import type { Clock } from '../../core/instant.ts'
import type { Engine } from '../../engine/engine.ts'
import { KnownError } from '../../errors.ts'
import type { WriteAudit } from '../../storage/contract/audit.ts'
import type { PutCampaign, StoredCampaign } from '../../storage/contract/campaigns.ts'
import type { RedriveResult } from '../../storage/contract/letters.ts'
import type { HeldLock } from '../../storage/contract/locks.ts'
import type { Storage } from '../../storage/contract/storage.ts'
import { auditOf, policyTrace } from '../audit.ts'
import { type CampaignSteps, type LettersLog, stepLettersMax } from '../parts.ts'
import { noticed } from '../redrive.ts'
import { reasonOfDiscard } from './discard-reason.ts'
import { fromDocument, toDocument } from './document.ts'
import { createHeldLocks } from './locks.ts'
import { createTurnsAhead } from './prefetch.ts'
import { selectedBy } from './spec.ts'
import {
  afterFreezing,
  afterSending,
  type CampaignFacts,
  nextStep,
  type Step,
  sizeOf,
  storedState,
  workedOnStates,
} from './state-machine.ts'
import { createRests } from './throttle.ts'

export interface CampaignWork {
  /** One step of each campaign that there is something to do for; whether there may be more right now. */
  pass(): Promise<boolean>
  close(): Promise<void>
}

const frozenPerStep = 5_000
const lookedAtPerStep = 20_000
const campaignsPerRead = 100
/**
 * How much of the time a campaign with a rate freezes its letters: who gives one has live work that must not notice it, and
 * millions are frozen for a minute.
 */
const freezingShare = 0.25

export function createCampaignWork(
  parts: Readonly<{
    storage: Storage
    engine: Pick<Engine, 'noticeItems'>
    clock: Clock
    owner: string
    campaignSteps?: CampaignSteps
    log: LettersLog
    onChanged(id: string): void
  }>,
): CampaignWork {
  const { storage, engine, clock, log, onChanged } = parts
  const { frozenMax, sentMax } = parts.campaignSteps ?? { frozenMax: frozenPerStep, sentMax: stepLettersMax }
  const locks = createHeldLocks(parts)
  const turns = createTurnsAhead(storage)
  const rests = createRests(freezingShare)
  const closing = new AbortController()

  const become = async (
    stored: StoredCampaign,
    facts: CampaignFacts,
    lock: HeldLock,
    audit: readonly WriteAudit[] = [],
  ): Promise<void> => {
    const { state, stateReason } = facts
    const halt = auditOf(clock, { ...policyTrace, reason: stateReason }, 'campaign.halt', [stored.id], {
      name: facts.spec.name,
      counts: stored.counts,
    })
    await storage.write([
      { op: 'fence', lock },
      putOf(stored, facts),
      ...(state === 'halted' ? [halt] : []),
      ...audit,
    ] as const)
    const told = { campaign: stored.id, name: facts.spec.name, state, counts: stored.counts }
    if (state === 'halted') log.warn(told, `campaign halted: ${stateReason}`)
    else log.info(told, `campaign is ${state}`)
  }

  const freeze = async (stored: StoredCampaign, facts: CampaignFacts, lock: HeldLock): Promise<void> => {
    const { selection, ratePerSecond } = facts.spec
    const startedAt = performance.now()
    // The named ones are frozen when the campaign is made.
    if ('letterIds' in selection) throw new Error(`campaign ${stored.id} names its letters, and has none`)
    const [, { added, looked, next }] = await storage.write([
      { op: 'fence', lock },
      {
        op: 'freeze-letters',
        campaignId: stored.id,
        filter: selectedBy(facts.spec, selection.filter, facts.createdAt),
        ...(facts.frozenUntil !== null && { after: facts.frozenUntil }),
        countMax: frozenMax,
        lookMax: lookedAtPerStep,
      },
    ] as const)
    log.info({ campaign: stored.id, added, looked }, 'campaign freezes its letters')
    const now = clock.now()
    if (next !== null) {
      await storage.write([
        { op: 'fence', lock },
        putOf(stored, { ...facts, frozenUntil: next, updatedAt: now }),
      ])
      if (ratePerSecond > 0) rests.begin(stored.id, performance.now() - startedAt)
      return
    }
    const frozen = await storage.getCampaign(stored.id)
    if (frozen === null) return
    const size = sizeOf(frozen.counts)
    const trace = { actor: facts.actor, reason: facts.reason, requestId: '' }
    const audit = auditOf(clock, trace, 'campaign.freeze', [stored.id], { letters: size })
    await become({ ...stored, counts: frozen.counts }, afterFreezing(facts, size, now), lock, [audit])
  }

  const send = async (
    stored: StoredCampaign,
    facts: CampaignFacts,
    countMax: number,
    lock: HeldLock,
  ): Promise<void> => {
    const { id } = stored
    const turn = await turns.next(id, facts.placeDone, countMax)
    const last = turn.at(-1)
    if (last === undefined)
      throw new Error(`campaign ${id} has pending letters before its place ${facts.placeDone}`)
    const now = clock.now()
    const put = putOf(stored, afterSending(facts, { count: turn.length, placeDone: last.place }, now))
    const { spec, actor, reason } = facts
    const letters = turn.map(({ letterId, place }) => ({ letterId, campaign: { id, place } }))
    const fence = { op: 'fence', lock } as const
    if (spec.action === 'discard') {
      await storage.write([fence, put, { op: 'discard', letters, reason: reasonOfDiscard(reason, id), now }])
      log.info({ campaign: id, letters: letters.length }, 'campaign gave letters up')
      return
    }
    // One with a rate waits between its steps anyway, and the next may be of another size.
    if (spec.ratePerSecond === 0 && stored.counts.pending > turn.length) {
      const after = stored.counts.pending - turn.length
      turns.readAhead(id, last.place, Math.min(after, sentMax))
    }
    const [, , redriven] = await storage.write([
      fence,
      put,
      {
        op: 'redrive',
        letters: letters.map((letter) => ({ ...letter, queue: spec.target })),
        isDeadAllowed: spec.isDeadAllowed,
        isCapped: !spec.isDeadAllowed,
        actor,
        now,
      },
    ] as const)
    engine.noticeItems(noticed(redriven))
    log.info({ campaign: id, letters: letters.length, sent: startedCount(redriven) }, 'campaign sent letters')
  }

  const skip = async (stored: StoredCampaign, lock: HeldLock): Promise<void> => {
    await storage.write([
      { op: 'fence', lock },
      { op: 'skip-letters', campaignId: stored.id, why: 'cancelled', countMax: frozenMax },
    ])
  }

  const take = async (
    stored: StoredCampaign,
    facts: CampaignFacts,
    step: Step,
    lock: HeldLock,
  ): Promise<void> => {
    switch (step.kind) {
      case 'become':
        return become(stored, step.facts, lock)
      case 'freeze':
        return freeze(stored, facts, lock)
      case 'send':
        return send(stored, facts, step.countMax, lock)
      case 'skip':
        return skip(stored, lock)
      case 'wait':
    }
  }

  /** Whether something was done, or may be at once. */
  const workOn = async (seen: StoredCampaign): Promise<boolean> => {
    const { id } = seen
    const name = `campaign/${id}`
    // Most passes find campaigns that wait for time or for workers: those cost no lock.
    if (nextStep(fromDocument(seen.document), seen.counts, clock.now(), sentMax).kind === 'wait') return false
    const lock = await locks.hold(name)
    if (lock === null) return false
    try {
      const stored = await storage.getCampaign(id)
      if (stored === null) return false
      const facts = fromDocument(stored.document)
      const step = nextStep(facts, stored.counts, clock.now(), sentMax)
      if (step.kind === 'wait') return false
      await take(stored, facts, step, lock)
      onChanged(id)
      const isOver = step.kind === 'become' && step.facts.endedAt !== null
      if (isOver) await locks.release(name)
      return !isOver
    } catch (error) {
      if (!(error instanceof KnownError)) throw error
      // Somebody else decided something about it: look again.
      if (error.code === 'CAMPAIGN_CHANGED') return true
      if (error.code !== 'LOCK_LOST') throw error
      locks.forget(name)
      return false
    }
  }

  const workedOn = async (): Promise<readonly StoredCampaign[]> => {
    const found: StoredCampaign[] = []
    for (;;) {
      const beforeId = found.at(-1)?.id
      const page = await storage.listCampaigns({
        states: workedOnStates,
        ...(beforeId !== undefined && { beforeId }),
        countMax: campaignsPerRead,
      })
      found.push(...page)
      if (page.length < campaignsPerRead) return found
    }
  }

  return {
    pass: async () => {
      const campaigns = await workedOn()
      const ids = new Set(campaigns.map(({ id }) => id))
      turns.keepOnly(ids)
      rests.keepOnly(ids)
      let isMore = false
      let isAnyResting = false
      const errors: unknown[] = []
      // The oldest first; one that fails does not keep the others from their step.
      for (const campaign of campaigns.toReversed()) {
        if (rests.isResting(campaign.id)) {
          isAnyResting = true
          continue
        }
        try {
          if (await workOn(campaign)) isMore = true
        } catch (error) {
          errors.push(error)
        }
      }
      if (errors.length > 0) throw errors[0]
      if (isAnyResting && !isMore) await rests.wait(closing.signal)
      return isMore || isAnyResting
    },
    close: () => {
      closing.abort()
      return locks.releaseAll()
    },
  }
}

export function putOf(stored: Pick<StoredCampaign, 'id' | 'version'>, facts: CampaignFacts): PutCampaign {
  const { id, version } = stored
  return {
    op: 'put-campaign',
    id,
    version,
    state: storedState(facts),
    document: toDocument(facts),
    isRequired: true,
  }
}

function startedCount(redriven: readonly RedriveResult[]): number {
  return redriven.filter(({ isStarted }) => isStarted).length
}

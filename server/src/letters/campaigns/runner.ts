/**
 * Runs campaigns step by step. A step is one transaction with the fence of the campaign's lock, the new
 * version of its document and the changes of the letters. So a step happens completely or not at all, on one
 * server at a time, and not if a person paused or cancelled the campaign in between.
 *
 * After a crash, the store determines the next step: letters that were sent are no longer pending, and their
 * tokens are gone from the pace.
 *
 * Only freezing takes two transactions, because its progress is known only after the first one. After a crash
 * between them, the step is repeated from where it started and skips letters that are already in the set.
 */
import type { CampaignId } from '../../core/ids/ids.ts'
import type { Clock } from '../../core/time/instant.ts'
import type { Engine } from '../../engine/engine.ts'
import { KnownError } from '../../errors.ts'
import type { WriteAudit } from '../../storage/contract/audit.ts'
import type { PutCampaign, StoredCampaign } from '../../storage/contract/campaigns.ts'
import type { RedriveResult } from '../../storage/contract/letters.ts'
import type { HeldLock } from '../../storage/contract/locks.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import { createAuditCommand, inNamespace, policyAttribution } from '../audit.ts'
import { type CampaignSteps, type LettersLog, stepLettersMax } from '../parts.ts'
import { decodeDocument, encodeDocument } from './document.ts'
import { createHeldLocks, type HeldLocks } from './locks.ts'
import { createLetterPrefetch, type LetterPrefetch } from './prefetch.ts'
import { completeFilter } from './spec.ts'
import {
  activeStoredStates,
  applyFreezing,
  applySending,
  type CampaignFacts,
  countAll,
  planStep,
  type Step,
  toStoredState,
} from './state-machine.ts'
import { createThrottle } from './throttle.ts'

const frozenPerStep = 5_000
const examinedPerStep = 20_000
const campaignsPerRead = 100
/**
 * Share of the time that a campaign with a rate may use for freezing. Freezing millions of letters takes
 * about a minute, and a rate means that live work must not be slowed down.
 */
const freezingShare = 0.25

type CampaignRunnerParts = Readonly<{
  storage: StoreReads
  engine: Pick<Engine, 'write'>
  clock: Clock
  owner: string
  campaignSteps?: CampaignSteps
  log: LettersLog
  onChanged(id: CampaignId): void
}>

export class CampaignRunner {
  readonly #storage: StoreReads
  readonly #engine: Pick<Engine, 'write'>
  readonly #clock: Clock
  readonly #log: LettersLog
  readonly #onChanged: (id: CampaignId) => void
  readonly #steps: CampaignSteps
  readonly #locks: HeldLocks
  readonly #prefetch: LetterPrefetch
  readonly #throttle = createThrottle(freezingShare)
  readonly #closing = new AbortController()

  constructor(parts: CampaignRunnerParts) {
    this.#storage = parts.storage
    this.#engine = parts.engine
    this.#clock = parts.clock
    this.#log = parts.log
    this.#onChanged = parts.onChanged
    this.#steps = parts.campaignSteps ?? { frozenMax: frozenPerStep, sentMax: stepLettersMax }
    this.#locks = createHeldLocks(parts)
    this.#prefetch = createLetterPrefetch(parts.storage)
  }

  /** Runs one step of each active campaign; true if more can be done immediately. */
  async pass(): Promise<boolean> {
    const campaigns = await this.#listActive()
    const ids = new Set(campaigns.map(({ id }) => id))
    this.#prefetch.keepOnly(ids)
    this.#throttle.keepOnly(ids)
    const ready = campaigns.filter(({ id }) => !this.#throttle.isPaused(id))
    const isAnyPaused = ready.length < campaigns.length
    const isMore = await this.#runAll(ready)
    if (isAnyPaused && !isMore) await this.#throttle.wait(this.#closing.signal)
    return isMore || isAnyPaused
  }

  close(): Promise<void> {
    this.#closing.abort()
    return this.#locks.releaseAll()
  }

  /** Oldest first. A campaign that fails does not stop the steps of the others. */
  async #runAll(campaigns: readonly StoredCampaign[]): Promise<boolean> {
    let isMore = false
    const errors: unknown[] = []
    for (const campaign of campaigns.toReversed()) {
      try {
        if (await this.#runCampaign(campaign)) isMore = true
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 0) throw errors[0]
    return isMore
  }

  async #update(
    stored: StoredCampaign,
    facts: CampaignFacts,
    lock: HeldLock,
    audit: readonly WriteAudit[] = [],
  ): Promise<void> {
    const { state, stateReason } = facts
    const stop = createAuditCommand(
      this.#clock,
      inNamespace({ ...policyAttribution, reason: stateReason }, stored.namespace),
      state === 'halted' ? 'campaign.halt' : 'campaign.pause',
      [stored.id],
      {
        name: facts.spec.name,
        counts: stored.counts,
      },
    )
    await this.#engine.write([
      { op: 'fence', lock },
      putCampaign(stored, facts),
      ...audit,
      ...(state === 'halted' || state === 'paused' ? [stop] : []),
    ] as const)
    const fields = { campaign: stored.id, name: facts.spec.name, state, counts: stored.counts }
    if (state === 'halted') this.#log.warn(fields, `campaign halted: ${stateReason}`)
    else this.#log.info(fields, `campaign is ${state}`)
  }

  async #freeze(stored: StoredCampaign, facts: CampaignFacts, lock: HeldLock): Promise<void> {
    const { selection, ratePerSecond, limit } = facts.spec
    const startedAt = performance.now()
    // Letters that are named by id are frozen when the campaign is created.
    if ('letterIds' in selection) throw new Error(`campaign ${stored.id} names its letters, and has none`)
    const missing = (limit ?? Number.POSITIVE_INFINITY) - countAll(stored.counts)
    if (missing <= 0) return this.#endFreezing(stored, facts, lock)
    const [, { added, examinedCount, next }] = await this.#engine.write([
      { op: 'fence', lock },
      {
        op: 'freeze-letters',
        campaignId: stored.id,
        filter: completeFilter(facts.spec, selection.filter),
        ...(facts.frozenUntil !== null && { after: facts.frozenUntil }),
        countMax: Math.min(this.#steps.frozenMax, missing),
        examinedMax: examinedPerStep,
      },
    ] as const)
    this.#log.info(
      { campaign: stored.id, added, examined_count: examinedCount },
      'campaign freezes its letters',
    )
    if (next === null || added === missing) return this.#endFreezing(stored, facts, lock)
    await this.#engine.write([
      { op: 'fence', lock },
      putCampaign(stored, { ...facts, frozenUntil: next, updatedAt: this.#clock.now() }),
    ])
    if (ratePerSecond > 0) this.#throttle.pause(stored.id, performance.now() - startedAt)
  }

  async #endFreezing(stored: StoredCampaign, facts: CampaignFacts, lock: HeldLock): Promise<void> {
    const frozen = await this.#storage.getCampaign(stored.id)
    if (frozen === null) return
    const now = this.#clock.now()
    const size = countAll(frozen.counts)
    const attribution = inNamespace(
      { actor: facts.actor, reason: facts.reason, requestId: '' },
      stored.namespace,
    )
    const audit = createAuditCommand(this.#clock, attribution, 'campaign.freeze', [stored.id], {
      letters: size,
    })
    await this.#update({ ...stored, counts: frozen.counts }, applyFreezing(facts, size, now), lock, [audit])
  }

  async #send(stored: StoredCampaign, facts: CampaignFacts, countMax: number, lock: HeldLock): Promise<void> {
    const { id } = stored
    const batch = await this.#prefetch.takeNext(id, facts.positionDone, countMax)
    const last = batch.at(-1)
    if (last === undefined)
      throw new Error(`campaign ${id} has pending letters before place ${facts.positionDone}`)
    const now = this.#clock.now()
    const put = putCampaign(
      stored,
      applySending(facts, { count: batch.length, positionDone: last.position }, now),
    )
    const { spec, actor, reason } = facts
    const letters = batch.map(({ letterId, position }) => ({ letterId, campaign: { id, position } }))
    const fence = { op: 'fence', lock } as const
    if (spec.action === 'discard') {
      await this.#engine.write([fence, put, { op: 'discard', letters, reason, now }])
      this.#log.info({ campaign: id, letters: letters.length }, 'campaign discarded letters')
      return
    }
    // A campaign with a rate waits between its steps anyway, and its next step may have another size.
    if (spec.ratePerSecond === 0 && stored.counts.pending > batch.length) {
      const after = stored.counts.pending - batch.length
      this.#prefetch.readAhead(id, last.position, Math.min(after, this.#steps.sentMax))
    }
    const [, , redriven] = await this.#engine.write([
      fence,
      put,
      {
        op: 'redrive',
        letters: letters.map((letter) => ({ ...letter, queue: spec.target })),
        isDeadAllowed: spec.isDeadAllowed,
        isCapped: !spec.isDeadAllowed,
        ...(spec.targetNamespaces !== undefined && { targetNamespaces: spec.targetNamespaces }),
        actor,
        now,
      },
    ] as const)
    this.#log.info(
      { campaign: id, letters: letters.length, sent: countStarted(redriven) },
      'campaign sent letters',
    )
  }

  async #skip(stored: StoredCampaign, lock: HeldLock): Promise<void> {
    await this.#engine.write([
      { op: 'fence', lock },
      { op: 'skip-letters', campaignId: stored.id, refusal: 'cancelled', countMax: this.#steps.frozenMax },
    ])
  }

  async #runStep(stored: StoredCampaign, facts: CampaignFacts, step: Step, lock: HeldLock): Promise<void> {
    switch (step.kind) {
      case 'update':
        return this.#update(stored, step.facts, lock)
      case 'freeze':
        return this.#freeze(stored, facts, lock)
      case 'send':
        return this.#send(stored, facts, step.countMax, lock)
      case 'skip':
        return this.#skip(stored, lock)
      case 'wait':
    }
  }

  /** Runs the next step of a campaign; true if another step may follow immediately. */
  async #runCampaign(seen: StoredCampaign): Promise<boolean> {
    const { id } = seen
    const name = `campaign/${id}`
    // Most passes find campaigns that wait for time or for workers. Check this first: it needs no lock.
    if (planStep(decodeDocument(seen), seen.counts, this.#clock.now(), this.#steps.sentMax).kind === 'wait')
      return false
    const lock = await this.#locks.hold(name)
    if (lock === null) return false
    try {
      const stored = await this.#storage.getCampaign(id)
      if (stored === null) return false
      const facts = decodeDocument(stored)
      const step = planStep(facts, stored.counts, this.#clock.now(), this.#steps.sentMax)
      if (step.kind === 'wait') return false
      await this.#runStep(stored, facts, step, lock)
      this.#onChanged(id)
      const isOver = step.kind === 'update' && step.facts.endedAt !== null
      if (isOver) await this.#locks.release(name)
      return !isOver
    } catch (error) {
      return this.#handleStepError(error, name)
    }
  }

  /** True: run the campaign again. Rethrows errors that are not the result of a race. */
  #handleStepError(error: unknown, lockName: string): boolean {
    if (!(error instanceof KnownError)) throw error
    // A person changed the campaign in between: read it again.
    if (error.code === 'CAMPAIGN_CHANGED') return true
    if (error.code !== 'LOCK_LOST') throw error
    this.#locks.forget(lockName)
    return false
  }

  async #listActive(): Promise<readonly StoredCampaign[]> {
    const found: StoredCampaign[] = []
    for (;;) {
      const beforeId = found.at(-1)?.id
      const page = await this.#storage.listCampaigns({
        states: activeStoredStates,
        ...(beforeId !== undefined && { beforeId }),
        countMax: campaignsPerRead,
      })
      found.push(...page)
      if (page.length < campaignsPerRead) return found
    }
  }
}

export function putCampaign(
  stored: Pick<StoredCampaign, 'id' | 'version'> & Partial<Pick<StoredCampaign, 'namespace'>>,
  facts: CampaignFacts,
): PutCampaign {
  const { id, version, namespace = '' } = stored
  return {
    op: 'put-campaign',
    id,
    version,
    state: toStoredState(facts),
    namespace,
    document: encodeDocument(facts),
    isRequired: true,
  }
}

function countStarted(redriven: readonly RedriveResult[]): number {
  return redriven.filter(({ isStarted }) => isStarted).length
}

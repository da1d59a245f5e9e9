import { nextKsuids } from '../../core/ksuid.ts'
import type { Trace } from '../../engine/engine.ts'
import { KnownError } from '../../errors.ts'
import type { AuditEntry } from '../../storage/contract/audit.ts'
import type { StoredCampaign } from '../../storage/contract/campaigns.ts'
import { type Action, auditOf } from '../audit.ts'
import type { Campaign, CampaignChanges, CampaignSpec, Campaigns } from '../letters.ts'
import { type LettersParts, silent } from '../parts.ts'
import { createSearch } from '../search.ts'
import { isDeadQueue } from './dead-queue.ts'
import { fromDocument, toCampaign, toDocument } from './document.ts'
import { startPace } from './pace.ts'
import { previewCampaign } from './preview.ts'
import { createCampaignRunner, putCampaign } from './runner.ts'
import { checkChanges, checkReason, checkSpec } from './spec.ts'
import { adjust, afterFreezing, type CampaignFacts, cancel, pause, resume } from './state-machine.ts'
import { createChanges, watchCampaign } from './watch.ts'

export type CampaignService = Readonly<{
  campaigns: Campaigns
  pass(): Promise<boolean>
  close(): Promise<void>
}>

/** The runner may change a campaign while a person's decision is written: then read it again and retry. */
const triesMax = 20
/** With more queues than this, a wrong target is only noticed when the letters are skipped. */
const queuesMax = 10_000

export function createCampaigns(parts: LettersParts & { owner: string }): CampaignService {
  const { storage, engine, clock, random = Math.random, log = silent } = parts
  const changes = createChanges()
  const runner = createCampaignRunner({ ...parts, log, onChanged: changes.notify })
  const { resolveIds } = createSearch(storage)
  let lastId: string | undefined

  const stored = async (id: string): Promise<StoredCampaign> => {
    const found = await storage.getCampaign(id)
    if (found === null) throw new KnownError('CAMPAIGN_NOT_FOUND', `there is no campaign ${id}`)
    return found
  }
  const get = async (id: string): Promise<Campaign | null> => {
    const found = await storage.getCampaign(id)
    return found === null ? null : toCampaign(found, clock.now())
  }

  /** Writes a person's decision with its audit row. Writes nothing if nothing changes. */
  const decide = async (
    id: string,
    trace: Trace,
    action: Action,
    change: (facts: CampaignFacts, counts: Campaign['counts']) => CampaignFacts,
    detailsOf: (facts: CampaignFacts) => AuditEntry['details'] = () => ({}),
  ): Promise<Campaign> => {
    for (let tries = 1; ; tries++) {
      const found = await stored(id)
      const facts = fromDocument(found)
      const changed = change(facts, found.counts)
      if (changed === facts) return toCampaign(found, clock.now())
      try {
        await engine.write([
          putCampaign(found, changed),
          auditOf(clock, { ...trace, reason: trace.reason.trim() }, action, [id], {
            name: facts.spec.name,
            from: facts.state,
            counts: found.counts,
            ...detailsOf(facts),
          }),
        ])
      } catch (error) {
        const isRace = error instanceof KnownError && error.code === 'CAMPAIGN_CHANGED'
        if (isRace && tries < triesMax) continue
        throw error
      }
      log.info(
        { campaign: id, name: facts.spec.name, actor: trace.actor },
        `${action}: campaign is ${changed.state}`,
      )
      changes.notify(id)
      return toCampaign(await stored(id), clock.now())
    }
  }

  /** Replaces letter ids by root ids. An unknown id stays; the campaign skips it as missing. */
  const withRootIds = async (spec: CampaignSpec): Promise<CampaignSpec> => {
    if (!('letterIds' in spec.selection)) return spec
    const given = spec.selection.letterIds
    const found = await resolveIds(given)
    const letterIds = [...new Set(given.map((id, index) => found[index] ?? id))]
    return { ...spec, selection: { letterIds } }
  }

  const checkTarget = async ({ target }: CampaignSpec): Promise<void> => {
    if (target === null) return
    const refused = (sentence: string) => new KnownError('TARGET_INVALID', sentence)
    if ((await storage.getQueue(target)) === null) throw refused(`the target queue ${target} does not exist`)
    const queues = await storage.listQueues({ countMax: queuesMax })
    if (await isDeadQueue(storage, queues, target)) {
      throw refused(`queue ${target} is a dead queue; letters are never redriven to one`)
    }
  }

  const campaigns: Campaigns = {
    preview: async (spec) => previewCampaign(storage, await withRootIds(checkSpec(spec)), clock.now()),
    create: async (given, trace) => {
      const reason = checkReason(trace.reason)
      const spec = await withRootIds(checkSpec(given))
      await checkTarget(spec)
      const now = clock.now()
      const [id = ''] = nextKsuids(lastId, now, 1, random)
      lastId = id
      const { selection } = spec
      const letterIds = 'letterIds' in selection ? selection.letterIds : []
      const freezing = newFacts(spec, trace.actor, reason, now)
      const facts = letterIds.length > 0 ? afterFreezing(freezing, letterIds.length, now) : freezing
      // The number of letters that a filter selects is known only after freezing, which writes its own row.
      const letters = 'letterIds' in selection ? { letters: letterIds.length } : {}
      const details = { spec: toDocument(facts).spec, ...letters }
      await engine.write([
        putCampaign({ id, version: 0 }, facts),
        ...(letterIds.length > 0 ? [{ op: 'freeze-ids', campaignId: id, letterIds } as const] : []),
        auditOf(clock, { ...trace, reason }, 'campaign.create', [id], details),
      ] as const)
      log.info({ campaign: id, name: spec.name, actor: trace.actor }, 'campaign was created')
      return toCampaign(await stored(id), clock.now())
    },
    get,
    list: async (query) => {
      const now = clock.now()
      return (await storage.listCampaigns(query)).map((campaign) => toCampaign(campaign, now))
    },
    letters: (campaignId, query) => storage.listCampaignLetters({ campaignId, ...query }),
    adjust: async (id, adjusted, trace) => {
      checkChanges(adjusted)
      const change = (facts: CampaignFacts) => adjust(facts, adjusted, clock.now())
      const names = Object.keys(adjusted) as (keyof CampaignChanges)[]
      return decide(id, trace, 'campaign.adjust', change, ({ spec }) => ({
        ...adjusted,
        before: Object.fromEntries(names.map((name) => [name, spec[name]])),
      }))
    },
    pause: (id, trace) =>
      decide(id, trace, 'campaign.pause', (facts) => pause(facts, trace.reason.trim(), clock.now())),
    resume: (id, trace) =>
      decide(id, trace, 'campaign.resume', (facts, counts) => resume(facts, counts, clock.now())),
    cancel: (id, trace) =>
      decide(id, trace, 'campaign.cancel', (facts) => cancel(facts, trace.reason.trim(), clock.now())),
    watch: (id, signal) =>
      watchCampaign(
        () => get(id),
        () => changes.next(id, signal),
        signal,
      ),
  }
  return { campaigns, pass: runner.pass, close: runner.close }
}

function newFacts(spec: CampaignSpec, actor: string, reason: string, now: number): CampaignFacts {
  return {
    spec,
    state: 'freezing',
    stateReason: '',
    actor,
    reason,
    createdAt: now,
    updatedAt: now,
    startedAt: null,
    endedAt: null,
    size: null,
    frozenUntil: null,
    placeDone: null,
    pace: startPace(now),
    overlooked: { ended: 0, bad: 0 },
    recent: [],
  }
}

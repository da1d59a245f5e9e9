import type { CampaignId } from '../../core/ids/ids.ts'
import { createKsuids } from '../../core/ids/ksuid.ts'
import type { Clock } from '../../core/time/instant.ts'
import type { Attribution, Engine } from '../../engine/engine.ts'
import { KnownError } from '../../errors.ts'
import type { AuditEntry } from '../../storage/contract/audit.ts'
import type { CampaignLetter, StoredCampaign } from '../../storage/contract/campaigns.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import { type Action, createAuditCommand, inNamespace } from '../audit.ts'
import type {
  Campaign,
  CampaignCauses,
  CampaignChanges,
  CampaignPreview,
  CampaignSpec,
  Campaigns,
  PreviewOptions,
} from '../letters.ts'
import { type LettersLog, type LettersParts, silent } from '../parts.ts'
import { createSearch } from '../search.ts'
import { checkOneNamespace, findNamespace } from './campaign-namespace.ts'
import { readCauses } from './causes.ts'
import { isDeadQueue } from './dead-queue.ts'
import { decodeDocument, encodeDocument, toCampaign } from './document.ts'
import { startPace } from './pace.ts'
import { checkExpectedCount, describeIdle, type PreviewParts, previewCampaign } from './preview.ts'
import { CampaignRunner, putCampaign } from './runner.ts'
import { checkChanges, checkReason, checkSpec } from './spec.ts'
import { adjust, applyFreezing, type CampaignFacts, cancel, pause, resume } from './state-machine.ts'
import { type CampaignChangeSignal, createChanges, watchCampaign } from './watch.ts'

/** The runner may change a campaign while a person's decision is written: then read it again and retry. */
const triesMax = 20
/** With more queues than this, a wrong target is only noticed when the letters are skipped. */
const queuesMax = 10_000

/** Letters in progress whose targets are examined to describe what a campaign waits for. */
const sentExaminedMax = 10

/** The actions on campaigns, and the runner that executes them. */
export class CampaignService implements Campaigns {
  readonly #storage: StoreReads
  readonly #engine: Pick<Engine, 'write'>
  readonly #readLastLeaseCallAt: PreviewParts['readLastLeaseCallAt']
  readonly #clock: Clock
  readonly #random: () => number
  readonly #log: LettersLog
  readonly #changes: CampaignChangeSignal
  readonly #runner: CampaignRunner
  #lastId: string | undefined

  constructor(parts: LettersParts & { owner: string; changes?: CampaignChangeSignal }) {
    this.#changes = parts.changes ?? createChanges()
    const { log = silent } = parts
    this.#storage = parts.storage
    this.#engine = parts.engine
    const { storage, engine } = parts
    this.#readLastLeaseCallAt = engine.readLastLeaseCallAt ?? ((queue) => storage.readLeaseCall(queue))
    this.#clock = parts.clock
    this.#random = parts.random ?? Math.random
    this.#log = log
    this.#runner = new CampaignRunner({ ...parts, log, onChanged: this.#changes.notify })
  }

  /** Runs one step of each active campaign; true if more can be done immediately. */
  pass(): Promise<boolean> {
    return this.#runner.pass()
  }

  close(): Promise<void> {
    return this.#runner.close()
  }

  async preview(spec: CampaignSpec, options: PreviewOptions = {}): Promise<CampaignPreview> {
    const checked = await this.#resolveIds(checkSpec(spec))
    return previewCampaign(this.#previewParts(), checked, options)
  }

  async create(given: CampaignSpec, attribution: Attribution): Promise<Campaign> {
    const reason = checkReason(attribution.reason)
    const spec = await this.#resolveIds(checkSpec(given))
    await this.#checkTarget(spec)
    await checkExpectedCount(this.#storage, spec)
    const namespace = await findNamespace(this.#storage, spec)
    checkOneNamespace(spec, namespace)
    const now = this.#clock.now()
    const [id = ''] = createKsuids(this.#lastId, now, 1, this.#random)
    this.#lastId = id
    const { selection } = spec
    const letterIds = 'letterIds' in selection ? selection.letterIds : []
    const freezing = createFacts(spec, attribution.actor, reason, now)
    const facts = letterIds.length > 0 ? applyFreezing(freezing, letterIds.length, now) : freezing
    // The number of letters that a filter selects is known only after freezing, which writes its own row.
    const letters = 'letterIds' in selection ? { letters: letterIds.length } : {}
    const details = { spec: encodeDocument(facts).spec, ...letters }
    await this.#engine.write([
      putCampaign({ id, version: 0, namespace }, facts),
      ...(letterIds.length > 0 ? [{ op: 'freeze-ids', campaignId: id, letterIds } as const] : []),
      createAuditCommand(
        this.#clock,
        inNamespace({ ...attribution, reason }, namespace),
        'campaign.create',
        [id],
        details,
      ),
    ] as const)
    this.#log.info({ campaign: id, name: spec.name, actor: attribution.actor }, 'campaign was created')
    return toCampaign(await this.#read(id), this.#clock.now())
  }

  async get(id: CampaignId): Promise<Campaign | null> {
    const found = await this.#storage.getCampaign(id)
    if (found === null) return null
    const campaign = toCampaign(found, this.#clock.now())
    if (campaign.waitsFor === '') return campaign
    const idle = await this.#describeIdleTargets(id)
    return { ...campaign, waitsFor: [campaign.waitsFor, ...idle].join('; ') }
  }

  readCauses(campaign: Campaign): Promise<CampaignCauses> {
    return readCauses(this.#storage, campaign)
  }

  async list(query: Parameters<Campaigns['list']>[0]): Promise<readonly Campaign[]> {
    const now = this.#clock.now()
    return (await this.#storage.listCampaigns(query)).map((campaign) => toCampaign(campaign, now))
  }

  listLetters(
    campaignId: CampaignId,
    query: Parameters<Campaigns['listLetters']>[1],
  ): Promise<readonly CampaignLetter[]> {
    return this.#storage.listCampaignLetters({ campaignId, ...query })
  }

  async adjust(id: CampaignId, changes: CampaignChanges, attribution: Attribution): Promise<Campaign> {
    checkChanges(changes)
    const names = Object.keys(changes) as (keyof CampaignChanges)[]
    return this.#decide(
      id,
      attribution,
      'campaign.adjust',
      (facts) => adjust(facts, changes, this.#clock.now()),
      ({ spec }) => ({ ...changes, before: Object.fromEntries(names.map((name) => [name, spec[name]])) }),
    )
  }

  pause(id: CampaignId, attribution: Attribution): Promise<Campaign> {
    return this.#decide(id, attribution, 'campaign.pause', (facts) =>
      pause(facts, attribution.reason.trim(), this.#clock.now()),
    )
  }

  resume(id: CampaignId, attribution: Attribution): Promise<Campaign> {
    return this.#decide(id, attribution, 'campaign.resume', (facts, counts) =>
      resume(facts, counts, this.#clock.now()),
    )
  }

  cancel(id: CampaignId, attribution: Attribution): Promise<Campaign> {
    return this.#decide(id, attribution, 'campaign.cancel', (facts) =>
      cancel(facts, attribution.reason.trim(), this.#clock.now()),
    )
  }

  watch(id: CampaignId, signal: AbortSignal): AsyncIterable<Campaign> {
    return watchCampaign(
      () => this.get(id),
      () => this.#changes.waitForNext(id, signal),
      signal,
    )
  }

  /** Explains for the targets of some letters in progress why these letters may not be processed. */
  async #describeIdleTargets(campaignId: CampaignId): Promise<readonly string[]> {
    const query = { campaignId, states: ['sent'], countMax: sentExaminedMax } as const
    const sent = await this.#storage.listCampaignLetters(query)
    const letters = await this.#storage.getLetters(
      sent.map(({ letterId }) => letterId),
      'head',
    )
    const targets = new Set(letters.flatMap(({ letter }) => letter?.redrives[0]?.target.name ?? []))
    const idle: string[] = []
    for (const queue of targets) {
      const why = await describeIdle(this.#previewParts(), queue)
      if (why !== undefined) idle.push(why)
    }
    return idle
  }

  #previewParts(): PreviewParts {
    const storage = this.#storage
    return { storage, now: this.#clock.now(), readLastLeaseCallAt: this.#readLastLeaseCallAt }
  }

  async #read(id: CampaignId): Promise<StoredCampaign> {
    const found = await this.#storage.getCampaign(id)
    if (found === null) throw new KnownError('CAMPAIGN_NOT_FOUND', `there is no campaign ${id}`)
    return found
  }

  /** Writes a person's decision with its audit row. Writes nothing if nothing changes. */
  async #decide(
    id: CampaignId,
    attribution: Attribution,
    action: Action,
    change: (facts: CampaignFacts, counts: Campaign['counts']) => CampaignFacts,
    describe: (facts: CampaignFacts) => AuditEntry['details'] = () => ({}),
  ): Promise<Campaign> {
    for (let tries = 1; ; tries++) {
      const found = await this.#read(id)
      const facts = decodeDocument(found)
      const changed = change(facts, found.counts)
      if (changed === facts) return toCampaign(found, this.#clock.now())
      const { name } = facts.spec
      const details = { name, from: facts.state, counts: found.counts, ...describe(facts) }
      const reason = attribution.reason.trim()
      try {
        await this.#engine.write([
          putCampaign(found, changed),
          createAuditCommand(
            this.#clock,
            inNamespace({ ...attribution, reason }, found.namespace),
            action,
            [id],
            details,
          ),
        ])
      } catch (error) {
        const isRace = error instanceof KnownError && error.code === 'CAMPAIGN_CHANGED'
        if (isRace && tries < triesMax) continue
        throw error
      }
      this.#log.info(
        { campaign: id, name, actor: attribution.actor },
        `${action}: campaign is ${changed.state}`,
      )
      this.#changes.notify(id)
      return toCampaign(await this.#read(id), this.#clock.now())
    }
  }

  /** Replaces letter ids by root ids. An unknown id stays; the campaign skips it as missing. */
  async #resolveIds(spec: CampaignSpec): Promise<CampaignSpec> {
    if (!('letterIds' in spec.selection)) return spec
    const given = spec.selection.letterIds
    const found = await createSearch(this.#storage).resolveIds(given)
    const all = [...new Set(given.map((id, index) => found[index] ?? id))]
    const letterIds = spec.limit === null ? all : all.slice(0, spec.limit)
    return { ...spec, selection: { letterIds } }
  }

  async #checkTarget({ target }: CampaignSpec): Promise<void> {
    if (target === null) return
    const createTargetError = (sentence: string) => new KnownError('TARGET_INVALID', sentence)
    if ((await this.#storage.getQueue(target)) === null)
      throw createTargetError(`the target queue ${target} does not exist`)
    const queues = await this.#storage.listQueues({ countMax: queuesMax })
    if (await isDeadQueue(this.#storage, queues, target)) {
      throw createTargetError(`queue ${target} is a dead queue; letters are never redriven to one`)
    }
  }
}

function createFacts(spec: CampaignSpec, actor: string, reason: string, now: number): CampaignFacts {
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
    positionDone: null,
    pace: startPace(now),
    overlooked: { ended: 0, bad: 0 },
    recent: [],
  }
}

/** Campaigns: `/api/v1/campaigns`. */
import type { Caller, CallOptions } from './caller.ts'
import type {
  Campaign,
  CampaignLetterState,
  CampaignLettersPage,
  CampaignPace,
  CampaignPreview,
  CampaignSelection,
  CampaignsPage,
  NewCampaign,
  Page,
} from './letter-wire.ts'
import { type LineReader, StreamCut } from './lines.ts'
import { queryOf } from './query.ts'
import type { CareOptions } from './v1-calls.ts'

export interface CampaignCalls {
  /** What a campaign would do now. Changes nothing. */
  previewCampaign(selection: CampaignSelection, options?: CallOptions): Promise<CampaignPreview>
  /** Not repeated when the answer is lost: look at `campaigns` first. */
  createCampaign(campaign: NewCampaign, options?: CallOptions): Promise<Campaign>
  /** Newest first. */
  campaigns(query?: Page, options?: CallOptions): Promise<CampaignsPage>
  campaign(id: string, options?: CallOptions): Promise<Campaign>
  /** The frozen set in its order, and what became of each letter. */
  campaignLetters(
    id: string,
    query?: Page & Readonly<{ state?: CampaignLetterState | readonly CampaignLetterState[] }>,
    options?: CallOptions,
  ): Promise<CampaignLettersPage>
  /** Faster or slower from now on, or halted sooner or later; what is left out stays. A ramp that is given begins now. */
  adjustCampaign(id: string, changes: CampaignPace, options?: CareOptions): Promise<Campaign>
  pauseCampaign(id: string, options?: CareOptions): Promise<Campaign>
  resumeCampaign(id: string, options?: CareOptions): Promise<Campaign>
  cancelCampaign(id: string, options?: CareOptions): Promise<Campaign>
  /** The present state, then every change, to the last one. Goes on after a cut connection or a restarted server. */
  watchCampaign(id: string, options?: CallOptions): AsyncGenerator<Campaign, void, undefined>
}

/** The server says something every 15 seconds. */
const silenceMsMax = 40_000

export function createCampaignCalls(call: Caller, lines: LineReader): CampaignCalls {
  const get = async <T>(path: string, options?: CallOptions): Promise<T> =>
    (await call({ method: 'GET', path: `/api/v1/campaigns${path}`, mayBeDoneTwice: true }, options)).body as T
  const post = async <T>(
    path: string,
    body: object,
    mayBeDoneTwice: boolean,
    options?: CallOptions,
  ): Promise<T> =>
    (await call({ method: 'POST', path: `/api/v1/campaigns${path}`, body, mayBeDoneTwice }, options))
      .body as T
  const at = (id: string) => `/${encodeURIComponent(id)}`
  const step =
    (action: string) =>
    (id: string, { reason, ...options }: CareOptions = {}): Promise<Campaign> =>
      post(`${at(id)}/${action}`, { reason }, false, options)

  return {
    previewCampaign: (selection, options) => post('/preview', selection, true, options),
    createCampaign: (campaign, options) => post('', campaign, false, options),
    campaigns: (query = {}, options) => get(queryOf(query), options),
    campaign: (id, options) => get(at(id), options),
    campaignLetters: (id, query = {}, options) => get(`${at(id)}/letters${queryOf(query)}`, options),
    adjustCampaign: async (id, changes, { reason, ...options } = {}) => {
      const body = { ...changes, reason }
      const path = `/api/v1/campaigns${at(id)}`
      return (await call({ method: 'PATCH', path, body, mayBeDoneTwice: false }, options)).body as Campaign
    },
    pauseCampaign: step('pause'),
    resumeCampaign: step('resume'),
    cancelCampaign: step('cancel'),
    watchCampaign: (id, options = {}) =>
      watch(lines, `/api/v1/campaigns${at(id)}/events`, { answerMsMax: silenceMsMax, ...options }),
  }
}

async function* watch(
  lines: LineReader,
  path: string,
  options: CallOptions,
): AsyncGenerator<Campaign, void, undefined> {
  let lastId: string | undefined
  for (let tries = 1; ; tries++) {
    try {
      const headers = {
        Accept: 'text/event-stream',
        ...(lastId !== undefined && { 'Last-Event-ID': lastId }),
      }
      let data = ''
      for await (const line of lines.open({ path, headers }, options)) {
        if (line.startsWith('id: ')) lastId = line.slice(4)
        else if (line.startsWith('data: ')) data = line.slice(6)
        else if (line === '' && data !== '') {
          const campaign = JSON.parse(data) as Campaign
          data = ''
          tries = 1
          yield campaign
          if (campaign.is_ended) return
        }
      }
      throw endedEarly()
    } catch (error) {
      await lines.restOrFail(error, tries, options)
    }
  }
}

/** The server stops, or something between us cut the connection: the campaign goes on elsewhere. */
function endedEarly(): StreamCut {
  const facts = {
    code: 'CONNECTION_LOST',
    status: 0,
    message: 'the events ended before the campaign did',
    hint: 'The campaign goes on. Watch it again.',
  }
  return new StreamCut({ facts, fate: 'lost', retryAfterMs: 0 })
}

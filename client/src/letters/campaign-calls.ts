/** Calls for campaigns (`/api/v1/campaigns`). They return the server's JSON as `/docs` describes it. */

import type { Caller, CallOptions } from '../http/caller.ts'
import { type LineReader, StreamInterrupted } from '../http/lines.ts'
import { toQueryString } from '../http/query.ts'
import type { AuditedOptions } from '../queues/admin-calls.ts'
import type {
  Campaign,
  CampaignLetterState,
  CampaignLettersPage,
  CampaignPace,
  CampaignPreview,
  CampaignPreviewRequest,
  CampaignReport,
  CampaignsPage,
  NewCampaign,
  Page,
} from './letter-wire.ts'

export interface CampaignCalls {
  /** Reports what a campaign would do now. Changes nothing. */
  previewCampaign(selection: CampaignPreviewRequest, options?: CallOptions): Promise<CampaignPreview>
  /** Not repeated if the answer is lost: check `listCampaigns` first. */
  createCampaign(campaign: NewCampaign, options?: CallOptions): Promise<Campaign>
  /** Newest first. */
  listCampaigns(query?: Page, options?: CallOptions): Promise<CampaignsPage>
  getCampaign(id: string, options?: CallOptions): Promise<CampaignReport>
  /** The frozen set in its order, with the state of each letter. */
  listCampaignLetters(
    id: string,
    query?: Page & Readonly<{ state?: CampaignLetterState | readonly CampaignLetterState[] }>,
    options?: CallOptions,
  ): Promise<CampaignLettersPage>
  /** Changes the pace or the halt condition from now on. Omitted fields stay. A given ramp starts now. */
  adjustCampaign(id: string, changes: CampaignPace, options?: AuditedOptions): Promise<Campaign>
  pauseCampaign(id: string, options?: AuditedOptions): Promise<Campaign>
  resumeCampaign(id: string, options?: AuditedOptions): Promise<Campaign>
  cancelCampaign(id: string, options?: AuditedOptions): Promise<Campaign>
  /**
   * Yields the current state, then every change until the campaign ends. Reconnects after a lost connection
   * or a server restart.
   */
  watchCampaign(id: string, options?: CallOptions): AsyncGenerator<Campaign, void, undefined>
}

/** The server sends a heartbeat every 15 seconds. */
const silenceMsMax = 40_000

export function createCampaignCalls(call: Caller, lines: LineReader): CampaignCalls {
  const get = async <T>(path: string, options?: CallOptions): Promise<T> =>
    (await call({ method: 'GET', path: `/api/v1/campaigns${path}`, isRepeatable: true }, options)).body as T
  const send = async <T>(
    method: 'POST' | 'PATCH',
    path: string,
    body: object,
    isRepeatable: boolean,
    options?: CallOptions,
  ): Promise<T> =>
    (await call({ method, path: `/api/v1/campaigns${path}`, body, isRepeatable }, options)).body as T
  const toIdPath = (id: string) => `/${encodeURIComponent(id)}`
  const createAction =
    (action: 'pause' | 'resume' | 'cancel') =>
    (id: string, { reason, ...options }: AuditedOptions = {}): Promise<Campaign> =>
      send('POST', `${toIdPath(id)}/${action}`, { reason }, false, options)

  return {
    previewCampaign: (selection, options) => send('POST', '/preview', selection, true, options),
    createCampaign: (campaign, options) => send('POST', '', campaign, false, options),
    listCampaigns: (query = {}, options) => get(toQueryString(query), options),
    getCampaign: (id, options) => get(toIdPath(id), options),
    listCampaignLetters: (id, query = {}, options) =>
      get(`${toIdPath(id)}/letters${toQueryString(query)}`, options),
    adjustCampaign: (id, changes, { reason, ...options } = {}) =>
      send('PATCH', toIdPath(id), { ...changes, reason }, false, options),
    pauseCampaign: createAction('pause'),
    resumeCampaign: createAction('resume'),
    cancelCampaign: createAction('cancel'),
    watchCampaign: (id, options = {}) =>
      watch(lines, `/api/v1/campaigns${toIdPath(id)}/events`, { answerMsMax: silenceMsMax, ...options }),
  }
}

async function* watch(
  lines: LineReader,
  path: string,
  options: CallOptions,
): AsyncGenerator<Campaign, void, undefined> {
  let lastId: string | undefined
  for (let tries = 1; ; tries++) {
    const resume = lastId === undefined ? {} : { 'Last-Event-ID': lastId }
    const headers = { Accept: 'text/event-stream', ...resume }
    try {
      for await (const event of readEvents(lines.open({ path, headers }, options))) {
        lastId = event.id ?? lastId
        tries = 1
        const campaign = JSON.parse(event.data) as Campaign
        yield campaign
        if (campaign.is_ended) return
      }
      throw createEndedEarlyError()
    } catch (error) {
      await lines.waitBeforeRetry(error, tries, options)
    }
  }
}

type ServerEvent = Readonly<{ id: string | undefined; data: string }>

async function* readEvents(
  lines: AsyncGenerator<string, void, undefined>,
): AsyncGenerator<ServerEvent, void, undefined> {
  let id: string | undefined
  let data = ''
  for await (const line of lines) {
    if (line.startsWith('id: ')) id = line.slice(4)
    else if (line.startsWith('data: ')) data = line.slice(6)
    else if (line === '' && data !== '') {
      yield { id, data }
      data = ''
    }
  }
}

/** The server is stopping, or the connection was closed in between: the campaign itself continues. */
function createEndedEarlyError(): StreamInterrupted {
  const facts = {
    code: 'CONNECTION_LOST',
    status: 0,
    message: 'the events ended before the campaign did',
    hint: 'The campaign continues. Watch it again.',
  }
  return new StreamInterrupted({ facts, kind: 'lost', retryAfterMs: 0 })
}

import { type AlertCalls, createAlertCalls } from './alerts/alert-calls.ts'
import { type AlertChannelCalls, createAlertChannelCalls } from './alerts/channel-calls.ts'
import { type AlertRuleCalls, createAlertRuleCalls } from './alerts/rule-calls.ts'
import { type CallerParts, createCaller } from './http/caller.ts'
import { type Clock, systemClock } from './http/clock.ts'
import { createLineReader } from './http/lines.ts'
import { type CampaignCalls, createCampaignCalls } from './letters/campaign-calls.ts'
import { createGroupCalls, type GroupCalls } from './letters/group-calls.ts'
import { createLetterCalls, type LetterCalls } from './letters/letter-calls.ts'
import { type AdminCalls, createAdminCalls } from './queues/admin-calls.ts'
import { createItemCalls, type ItemCalls } from './queues/item-calls.ts'
import { createStoredItemCalls, type StoredItemCalls } from './queues/stored-item-calls.ts'
import { createHeartbeatCalls, type HeartbeatCalls } from './worker/heartbeat-calls.ts'
import { startWorker } from './worker/start-worker.ts'
import type { Handler, Worker, WorkOptions } from './worker/worker.ts'

export type ClientOptions = Readonly<{
  /** The server, such as `http://127.0.0.1:8080`. Omit it in a page that the server itself serves. */
  url?: string
  /** Sent with every call as `Authorization: Bearer`. */
  apiKey?: string
  /** How long an answer may take. Default 30,000. */
  answerMsMax?: number
  /** How often a call is repeated if that is safe. Default 5. */
  retriesMax?: number
  /** The delay before the first repeat; it doubles with each repeat. Default 100. */
  backoffMsMin?: number
  /** Default 5,000. */
  backoffMsMax?: number
  fetch?: typeof fetch
  clock?: Clock
  /** Returns numbers from 0 to 1, like Math.random. */
  random?: () => number
}>

/**
 * Calls a Redrive server. Each call rejects with a RedriveError if the server rejects it or cannot be
 * reached, and with the signal's reason if its signal aborts.
 */
export interface Client
  extends ItemCalls,
    AdminCalls,
    StoredItemCalls,
    LetterCalls,
    GroupCalls,
    HeartbeatCalls,
    AlertCalls,
    AlertRuleCalls,
    AlertChannelCalls,
    CampaignCalls {
  /** Starts a worker that leases items and calls the handler with each, until it is stopped. */
  work(queue: string, handler: Handler, options?: WorkOptions): Worker
}

export function createClient(options: ClientOptions = {}): Client {
  const { url = '', answerMsMax = 30_000, retriesMax = 5, backoffMsMin = 100, backoffMsMax = 5_000 } = options
  const { clock = systemClock, random = Math.random } = options
  const parts: CallerParts = {
    base: url.replace(/\/+$/, ''),
    apiKey: options.apiKey,
    // Look `fetch` up at each call and call it without a receiver: browsers reject any other receiver.
    fetch: (...args) => (options.fetch ?? fetch)(...args),
    clock,
    random,
    answerMsMax,
    retriesMax,
    backoff: { msMin: backoffMsMin, msMax: backoffMsMax },
  }
  const call = createCaller(parts)
  const lines = createLineReader(parts)
  const client = {
    ...createItemCalls(call, clock, answerMsMax),
    ...createAdminCalls(call),
    ...createStoredItemCalls(call),
    ...createLetterCalls(call, lines),
    ...createGroupCalls(call),
    ...createHeartbeatCalls(call),
    ...createAlertCalls(call),
    ...createAlertRuleCalls(call),
    ...createAlertChannelCalls(call),
    ...createCampaignCalls(call, lines),
  }
  return {
    ...client,
    work: (queue, handler, options = {}) => startWorker({ client, clock, random, queue, handler, options }),
  }
}

import { type CallerParts, createCaller } from './caller.ts'
import { type CampaignCalls, createCampaignCalls } from './campaign-calls.ts'
import { type Clock, systemClock } from './clock.ts'
import { createLetterCalls, type LetterCalls } from './letter-calls.ts'
import { createLineReader } from './lines.ts'
import { createQueueCalls, type QueueCalls } from './queue-calls.ts'
import { createV1Calls, type V1Calls } from './v1-calls.ts'
import { startWorker } from './worker/start-worker.ts'
import type { Handler, Worker, WorkOptions } from './worker/worker.ts'

export type ClientOptions = Readonly<{
  /** Where the server is, such as `http://127.0.0.1:8080`. In a page of the server itself: leave it out. */
  url?: string
  /** Sent with every call as `Authorization: Bearer`. */
  apiKey?: string
  /** How long an answer may take. Default 30,000. */
  answerMsMax?: number
  /** How often a call is repeated where that does no harm. Default 5. */
  retriesMax?: number
  /** The rest before the first repeat; it doubles each time. Default 100. */
  backoffMsMin?: number
  /** Default 5,000. */
  backoffMsMax?: number
  fetch?: typeof fetch
  clock?: Clock
  /** Gives numbers from 0 up to 1. */
  random?: () => number
}>

/**
 * Calls a Redrive server. Each call rejects with a RedriveError when the server says no or cannot be
 * asked, and with the signal's reason when its signal aborts.
 */
export interface Client extends QueueCalls, V1Calls, LetterCalls, CampaignCalls {
  /** Leases items and calls the handler with each, until it is stopped. */
  work(queue: string, handler: Handler, options?: WorkOptions): Worker
}

export function createClient(options: ClientOptions = {}): Client {
  const { url = '', answerMsMax = 30_000, retriesMax = 5, backoffMsMin = 100, backoffMsMax = 5_000 } = options
  const { clock = systemClock, random = Math.random } = options
  const parts: CallerParts = {
    base: url.replace(/\/+$/, ''),
    apiKey: options.apiKey,
    // Looked up at each call and called as a bare function: browsers refuse any other receiver.
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
    ...createQueueCalls(call, clock, answerMsMax),
    ...createV1Calls(call, clock),
    ...createLetterCalls(call, lines),
    ...createCampaignCalls(call, lines),
  }
  return {
    ...client,
    work: (queue, handler, options = {}) => startWorker({ client, clock, random, queue, handler, options }),
  }
}

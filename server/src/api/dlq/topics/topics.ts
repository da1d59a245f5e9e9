/**
 * The messages of a topic are the letters that came from it. `/messages` and `/messages/retry-all` take the
 * topic as a parameter, for topics whose name is the path of another route.
 */

import { Type } from 'typebox'
import type { Item } from '../../../core/items/item.ts'
import type { Campaign, Letters } from '../../../letters/letters.ts'
import type { ListedState } from '../../../storage/contract/items.ts'
import { type LetterFilter, pageBytesMax } from '../../../storage/contract/letters.ts'
import { takeTurn } from '../../../turns.ts'
import type { ApiContext } from '../../context.ts'
import { createAttribution } from '../../http/attribution.ts'
import { component } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { type Part, sendParts } from '../../http/wire/json-parts.ts'
import { dlqMessages, prefix } from '../dialects.ts'
import { type ReadLetters, readNumberedPage } from '../numbered-pages.ts'
import { Message, writeMessage } from './message-text.ts'
import { readRetriesMax } from './retries-max.ts'

const inPath = Type.Object({ topic: Type.String({ minLength: 1, description: 'Name of the topic.' }) })
const inQuery = {
  topic: Type.String({ minLength: 1, default: 'messages', description: 'Name of the topic.' }),
}
const Page = {
  page: Type.Integer({ default: 1, description: 'Number of the page. Values below 1 count as 1.' }),
  page_size: Type.Integer({
    default: 20,
    description: 'Messages per page. Values outside 1 to 1,000 count as the nearest bound.',
  }),
}
/** Accepted in the query or in the body. */
const Reason = {
  reason: Type.Optional(Type.String({ maxLength: 1_000, description: 'The reason for the audit log.' })),
}

const Messages = component(
  'MessagePage',
  Type.Object({
    messages: Type.Array(Message, { description: 'The messages of this page, newest first.' }),
    pagination: Type.Object({
      total_count: Type.Integer({ description: 'Number of messages of the topic.' }),
      page: Type.Integer({ description: 'Number of this page.' }),
      page_size: Type.Integer({ description: 'Messages per page.' }),
      has_next: Type.Boolean({ description: 'Whether another page follows.' }),
    }),
  }),
)

const Retried = component(
  'RetryAllResult',
  Type.Object({
    retried_count: Type.Integer({ description: 'Number of messages that were sent or will be sent.' }),
    message: Type.String({ description: 'The same as a sentence.' }),
    skipped_count: Type.Optional(Type.Integer({ description: 'Number of messages that could not be sent.' })),
    campaign_id: Type.Optional(
      Type.String({
        description: 'The campaign that sends them. Its progress is at /api/v1/campaigns/{id}.',
      }),
    ),
  }),
)

const listing = {
  method: 'GET',
  permission: 'letter.read',
  summary: 'Lists the messages of a topic, newest first.',
  tag: 'dlq',
  dialect: dlqMessages,
  slowMs: 5_000,
  answerKind: 'large',
} as const

const retrying = {
  method: 'POST',
  permission: 'campaign.write',
  alsoNeeds: () => 'letter.redrive' as const,
  summary: 'Redrives all PENDING messages of a topic with a campaign.',
  tag: 'dlq',
  dialect: dlqMessages,
  slowMs: 5_000,
  isBodyOptional: true,
} as const
const ReasonBody = Type.Object(Reason, { additionalProperties: false })

export const topicRoutes = [
  route({
    ...listing,
    path: `${prefix}/{topic}`,
    operationId: 'listTopicMessages',
    errors: ['PAGE_TOO_DEEP'],
    schema: {
      params: inPath,
      querystring: Type.Object(Page, { additionalProperties: false }),
      response: { 200: Messages },
    },
    handler: async ({ params: { topic }, query }, reply, context) =>
      sendParts(reply, jsonType, await writeMessageList(context, topic, query)),
  }),
  route({
    ...listing,
    path: `${prefix}/messages`,
    operationId: 'listMessages',
    errors: ['PAGE_TOO_DEEP'],
    schema: {
      querystring: Type.Object({ ...inQuery, ...Page }, { additionalProperties: false }),
      response: { 200: Messages },
    },
    handler: async ({ query }, reply, context) =>
      sendParts(reply, jsonType, await writeMessageList(context, query.topic, query)),
  }),

  route({
    ...retrying,
    path: `${prefix}/{topic}/retry-all`,
    operationId: 'retryTopic',
    schema: {
      params: inPath,
      querystring: Type.Object(Reason, { additionalProperties: false }),
      body: ReasonBody,
      response: { 200: Retried },
    },
    handler: async (request, _reply, context) =>
      retryAll(
        context,
        request.params.topic,
        createAttribution(request, request.query.reason ?? request.body.reason ?? 'retry-all'),
      ),
  }),
  route({
    ...retrying,
    path: `${prefix}/messages/retry-all`,
    operationId: 'retryAllMessages',
    schema: {
      querystring: Type.Object({ ...inQuery, ...Reason }, { additionalProperties: false }),
      body: ReasonBody,
      response: { 200: Retried },
    },
    handler: async (request, _reply, context) =>
      retryAll(
        context,
        request.query.topic,
        createAttribution(request, request.query.reason ?? request.body.reason ?? 'retry-all'),
      ),
  }),
]

const jsonType = 'application/json; charset=utf-8'
const pageSizeMax = 1_000
/** All states except discarded. */
const messageStates: readonly ListedState[] = ['waiting', 'scheduled', 'leased', 'done', 'dead']

async function writeMessageList(
  context: ApiContext,
  topic: string,
  given: Readonly<{ page: number; page_size: number }>,
): Promise<Iterable<Part>> {
  const page = Math.min(Math.max(given.page, 1), Number.MAX_SAFE_INTEGER)
  const page_size = Math.min(Math.max(given.page_size, 1), pageSizeMax)
  const letters = context.letters()
  const filter = { origins: [topic], states: messageStates }
  const query = { filter, order: 'deadLetteredAt', isDescending: true, page, pageSize: page_size } as const
  const omitted = new Set<Item>()
  const found = await readNumberedPage(letters, query, readWithBytes(letters, omitted))
  const retriesMax = await readRetriesMax(
    context,
    found.letters.map((item) => item.queue),
  )
  const messages: Iterable<Part>[] = []
  for (const item of found.letters) {
    if (item.payload.length >= turnBytesMin) await takeTurn()
    const facts = { retriesMax: retriesMax(item.queue), isOmitted: omitted.has(item) }
    messages.push(await writeMessage(item, { ...facts, isJson: context.bodyThread.isJson }))
  }
  return joinMessages(messages, { total_count: found.total, page, page_size, has_next: found.hasNext })
}

/** Whether a payload is JSON is checked before the answer begins, for larger payloads one per turn. */
const turnBytesMin = 16 * 1_024

function* joinMessages(messages: readonly Iterable<Part>[], pagination: object): Generator<Part> {
  yield '{"messages":['
  for (const [index, message] of messages.entries()) {
    if (index > 0) yield ','
    yield* message
  }
  yield `],"pagination":${JSON.stringify(pagination)}}`
}

/** Reads payloads until the page has `pageBytesMax` bytes, then only the rest of each letter. */
function readWithBytes(letters: Letters, omitted: Set<Item>): ReadLetters {
  let bytes = 0
  return async (from, countMax, msMax) => {
    const isFull = bytes >= pageBytesMax
    const found = await letters.list({ ...from, countMax, msMax, bytes: isFull ? 'none' : 'all' })
    for (const item of found.letters) {
      bytes += item.payload.length
      if (isFull) omitted.add(item)
    }
    return found
  }
}

/** How long an answer waits for the campaign. The campaign continues after the answer. */
const campaignMsMax = 2_000

async function retryAll(
  context: ApiContext,
  topic: string,
  attribution: Readonly<{ actor: string; reason: string; requestId: string }>,
) {
  const letters = context.letters()
  const filter: LetterFilter = { origins: [topic], states: ['waiting', 'scheduled'] }
  const [{ count } = { count: 0 }] = await letters.count({ filter, by: [] })
  const describe = (retried: number): string => `${retried} messages retried in topic ${topic}`
  // A caller may poll this route, so an empty topic creates no campaign.
  if (count === 0) return { retried_count: 0, message: describe(0) }
  const campaign = await letters.campaigns.create(
    {
      // The cut may separate a surrogate pair.
      name: `retry-all ${topic}`.slice(0, 200).toWellFormed(),
      action: 'redrive',
      selection: { filter },
      target: null,
      isDeadAllowed: false,
      canaryCount: 0,
      ratePerSecond: 0,
      rampUs: 0,
      haltRatio: 1,
      haltMin: 1,
      limit: null,
      expectedCount: null,
    },
    attribution,
  )
  const last = await waitUntilSent(
    letters,
    campaign,
    AbortSignal.any([AbortSignal.timeout(campaignMsMax), context.stopping]),
  )
  const { skipped } = last.counts
  const retried = (last.size ?? count) - skipped
  return {
    retried_count: retried,
    message: describe(retried),
    ...(skipped > 0 && { skipped_count: skipped }),
    campaign_id: last.id,
  }
}

/** Waits until each letter was sent or skipped, or until the signal aborts. */
async function waitUntilSent(letters: Letters, campaign: Campaign, signal: AbortSignal): Promise<Campaign> {
  let last = campaign
  for await (const state of letters.campaigns.watch(campaign.id, signal)) {
    last = state
    if (state.size !== null && state.counts.pending === 0) break
    if (['paused', 'halted', 'cancelled', 'done'].includes(state.state)) break
  }
  return last
}

/** Numbers of jobs for monitoring. They come from counts, however many jobs there are. */
import { Type } from 'typebox'
import type { ConsumerCounts, JobStateName, JobTimes } from '../../storage/contract/webhooks.ts'
import { component } from '../http/openapi/annotations.ts'
import { formatInstant } from '../http/wire/wire-time.ts'
import { webhookApi } from './dialect.ts'
import { statusCodes } from './job-view.ts'
import { webhookRoute } from './webhook-route.ts'

const DLQStatus = component(
  'DLQStatus',
  Type.Object({
    consumers: Type.Array(
      Type.Object({
        channelId: Type.String({ description: 'Id of the channel.' }),
        channelName: Type.String({ description: 'Name of the channel.' }),
        consumerId: Type.String({ description: 'Id of the consumer.' }),
        consumerName: Type.String({ description: 'Name of the consumer.' }),
        deadCount: Type.Integer({ description: 'Exact number of dead jobs.' }),
      }),
      { description: 'Every consumer that ever had a dead job.' },
    ),
  }),
)
const JobStatus = Type.Object({
  status: Type.Integer({ description: '1001 QUEUED, 1002 INFLIGHT, 1003 DELIVERED, 1004 DEAD.' }),
  count: Type.Integer({ description: 'Exact number of jobs.' }),
  oldestItemTimestamp: Type.String({ format: 'date-time', description: 'Oldest last change of state.' }),
  newestItemTimestamp: Type.String({ format: 'date-time', description: 'Newest last change of state.' }),
})
const SeedEntry = Type.Object({
  ID: Type.String({ description: 'Id.' }),
  Name: Type.String({ description: 'Name.' }),
})

const shared = { method: 'GET', dialect: webhookApi, tag: 'webhooks' } as const

export const statusRoutes = [
  webhookRoute({
    ...shared,
    path: '/dlq-status',
    operationId: 'getDlqStatus',
    permission: 'webhook.read',
    summary: 'Returns the exact number of dead jobs of each consumer.',
    schema: { response: { 200: DLQStatus } },
    handler: async (_request, _reply, { storage }) => ({
      consumers: (await storage().listConsumerCounts())
        .filter(({ hadDead }) => hadDead)
        .map(({ consumer, channelName, dead }) => ({
          channelId: consumer.channelId,
          channelName,
          consumerId: consumer.id,
          consumerName: consumer.name,
          deadCount: dead,
        })),
    }),
  }),
  webhookRoute({
    ...shared,
    path: '/job-status',
    operationId: 'getJobStatus',
    permission: 'webhook.read',
    summary: 'Returns the numbers of jobs by channel, consumer and state.',
    schema: {
      response: {
        200: Type.Record(Type.String(), Type.Record(Type.String(), Type.Array(JobStatus)), {
          description: 'By id of the channel and id of the consumer.',
        }),
      },
    },
    handler: async (_request, _reply, { storage, clock }) => {
      const counts = await storage().listConsumerCounts()
      const times = await storage().readJobTimes(counts.map(({ consumer }) => consumer.number))
      const byNumber = new Map(times.map((each) => [each.consumerNumber, each]))
      const status: Record<string, Record<string, ReturnType<typeof viewStates>>> = {}
      for (const each of counts) {
        const { channelId, id, number } = each.consumer
        const states = viewStates(each, byNumber.get(number), clock.now())
        if (states.length === 0) continue
        status[channelId] ??= {}
        ;(status[channelId] as Record<string, typeof states>)[id] = states
      }
      return status
    },
  }),
  webhookRoute({
    ...shared,
    path: '/_status',
    operationId: 'getWebhookStatus',
    permission: 'public',
    summary: 'Returns whether the server is ready, and the configured producers, channels and consumers.',
    schema: {
      response: {
        200: Type.Object({
          SeedData: Type.Object({
            Producers: Type.Array(SeedEntry, { description: 'Producers of the configuration.' }),
            Channels: Type.Array(SeedEntry, { description: 'Channels of the configuration.' }),
            Consumers: Type.Array(
              Type.Object({
                ...SeedEntry.properties,
                Channel: Type.String({ description: 'Id of its channel.' }),
              }),
              { description: 'Consumers of the configuration.' },
            ),
          }),
          AppStatus: Type.Integer({ description: '1 not initialised, 2 initialising, 3 ready.' }),
        }),
      },
    },
    handler: (_request, _reply, { webhookOptions, health }) => {
      const { producers, channels, consumers } = webhookOptions.configured
      const view = ({ id, name }: { id: string; name?: string | undefined }) => ({ ID: id, Name: name ?? id })
      return {
        SeedData: {
          Producers: producers.map(view),
          Channels: channels.map(view),
          Consumers: consumers.map((consumer) => ({ ...view(consumer), Channel: consumer.channel })),
        },
        AppStatus: health().status === 'fail' ? 2 : 3,
      }
    },
  }),
] as const

const stateNames: readonly JobStateName[] = ['queued', 'inflight', 'delivered', 'dead']

/**
 * The counts decide. The times are not known for some of very many open jobs, and for jobs that changed in
 * between: then they are bounds.
 */
function viewStates(counts: ConsumerCounts, times: JobTimes | undefined, now: number) {
  const unknown = { oldestAt: counts.consumer.createdAt, newestAt: now }
  return stateNames.flatMap((state) => {
    const range = times?.[state] ?? unknown
    if (counts[state] === 0) return []
    return [
      {
        status: statusCodes[state],
        count: counts[state],
        oldestItemTimestamp: formatInstant(range.oldestAt),
        newestItemTimestamp: formatInstant(range.newestAt),
      },
    ]
  })
}
